/**
 * Joins the chat by WebSocket, through Afterword: what is typed is said, what is said is printed.
 */
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';

const { BASE, TOKEN } = process.env;
const socket = new WebSocket(`${BASE.replace(/^http/, 'ws')}/chat/socket`, {
  headers: { Authorization: `Bearer ${TOKEN}` },
});

socket.on('open', () => {
  console.log('joined');
  createInterface(process.stdin)
    .on('line', line => socket.send(line))
    .on('close', () => socket.close());
});
socket.addEventListener('message', ({ data }) => console.log(data));
socket.on('error', error => {
  console.error(error.message);
  process.exitCode = 1;
});
