/**
 * What Afterword is compared with: fast-proxy, over its undici client, in front of the app whose address is
 * the first argument.
 */
import { createServer } from 'node:http';
import fastProxy from 'fast-proxy';

const peer = fastProxy({ base: process.argv[2]!, undici: true });

createServer((req, res) => peer.proxy(req, res, req.url!)).listen(0, '127.0.0.1');
