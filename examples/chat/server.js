/**
 * A room of one chat, as a server of its own: messages come in by POST or WebSocket, and go out to everybody
 * who listens by WebSocket or server-sent events. It knows nothing of Afterword except the port to listen on.
 */
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { WebSocketServer } from 'ws';

/** What sends a message to one listener. */
const listeners = new Set();
let number = 0;

function say(text) {
  number += 1;
  const message = { number, text };
  for (const send of listeners) send(JSON.stringify(message));
  return message;
}

function listen(send, connection) {
  listeners.add(send);
  connection.once('close', () => listeners.delete(send));
}

const ROUTES = {
  'GET /health': (_, response) => response.writeHead(204).end(),
  'GET /events': (_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    response.write(': welcome\n\n');
    listen(message => response.write(`data: ${message}\n\n`), response);
  },
  'POST /messages': async (request, response) => {
    const { text } = await json(request);
    if (typeof text !== 'string') throw new TypeError('there is no text');
    response.writeHead(201, { 'Content-Type': 'application/json' }).end(JSON.stringify(say(text)));
  },
};

async function answer(request, response) {
  const path = request.url.split('?', 1)[0];
  const route = ROUTES[`${request.method} ${path}`];
  if (route === undefined) response.writeHead(404).end('there is nothing here\n');
  else await route(request, response);
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.writeHead(400).end('that was no message\n'));
});

new WebSocketServer({ server, path: '/socket' }).on('connection', socket => {
  listen(message => socket.send(message), socket);
  socket.addEventListener('message', ({ data }) => {
    if (typeof data === 'string') say(data); // a chat has no use for bytes
  });
});

server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1', () => {
  console.log(`the chat is open on port ${server.address().port}`);
});
