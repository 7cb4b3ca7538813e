/**
 * The app behind the proxies, and by itself the floor below which no Node server gets: a bare node:http server
 * that answers with JSON of the size that the path asks for.
 */
import { createServer } from 'node:http';
import { answerOf, REQUEST_BYTES, sizeAsked } from './workload.ts';

createServer((req, res) => {
  let received = 0;
  req.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  req.on('end', () => {
    if (received !== (req.method === 'POST' ? REQUEST_BYTES : 0)) {
      res.writeHead(400).end();
      return;
    }
    const answer = answerOf(sizeAsked(req.url!));
    res.writeHead(200, ['Content-Type', 'application/json', 'Content-Length', String(answer.length)]);
    res.end(answer);
  });
}).listen(0, '127.0.0.1');
