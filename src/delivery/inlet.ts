/**
 * Stands between a receiver's bytes and the HTTP parser. It takes out interim answers (RFC 9110 section 15.2:
 * a client must cope with them unasked, but undici ends the connection at a 100), and it bounds what one
 * answer may send in all: the parser itself sets no bound to reason phrases, chunk extensions and the like.
 */
import type { Socket } from 'node:net';
import { AttemptFault } from './outcome.ts';

export interface Inlet {
  /** Expects the next answer on this connection. */
  expectAnswer(): void;
}

/** Far above what an honest answer needs: 64 KiB of body in small chunks, and its headers. */
const MAX_ANSWER = 512 * 1024;
const MAX_INTERIM = 16 * 1024;

const INTERIM_START = 'HTTP/1.1 1';
const INTERIM_LENGTH = 'HTTP/1.1 1xx'.length;
const EMPTY = Buffer.alloc(0);

export function installInlet(socket: Socket): Inlet {
  const forward = socket.push.bind(socket);
  let atStart = true;
  let held: Buffer = EMPTY;
  let taken = 0;

  function end(): boolean {
    const rest = held;
    held = EMPTY;
    if (rest.length > 0) forward(rest);
    return forward(null);
  }

  socket.push = (chunk: Buffer | null) => {
    if (chunk === null) return end();
    taken += chunk.length;
    if (taken > MAX_ANSWER || held.length > MAX_INTERIM) {
      socket.destroy(new AttemptFault('invalid_answer', 'the answer has no end'));
      return false;
    }
    if (!atStart) return forward(chunk);
    held = withoutInterim(held.length === 0 ? chunk : Buffer.concat([held, chunk]));
    if (mayBeInterim(held)) return true;
    const rest = held;
    atStart = false;
    held = EMPTY;
    return forward(rest);
  };

  return {
    expectAnswer() {
      atStart = true;
      taken = 0;
    },
  };
}

/** Cuts whole interim answers off the beginning. */
function withoutInterim(bytes: Buffer): Buffer {
  let rest = bytes;
  while (isInterim(rest)) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) break;
    rest = rest.subarray(end + 4);
  }
  return rest;
}

/** 101 is left to the parser: nobody asked to switch protocols, so it is an error. */
function isInterim(bytes: Buffer): boolean {
  return /^HTTP\/1\.1 1(?!01)\d\d$/.test(bytes.toString('latin1', 0, INTERIM_LENGTH));
}

/** True while more bytes are needed to tell, or to see the end of an interim answer. */
function mayBeInterim(bytes: Buffer): boolean {
  if (bytes.length >= INTERIM_LENGTH) return isInterim(bytes);
  return bytes.toString('latin1', 0, INTERIM_START.length) === INTERIM_START.slice(0, bytes.length);
}
