/**
 * The JSON body of a request: read up to a bound, checked, and told in one sentence what is wrong with it.
 */
import type { z } from '@hono/zod-openapi';
import { Problem } from '../errors.ts';
import { mistakes } from './router.ts';

const MAX_BYTES = 64 * 1024;

interface Sent {
  readonly body: AsyncIterable<Uint8Array> | null;
}

/** How a route describes its body. */
export const bodyOf = <Schema extends z.ZodType>(schema: Schema, required: boolean) => ({
  required,
  content: { 'application/json': { schema } },
});

/** No body at all is taken for an empty object. */
export async function readJson<Schema extends z.ZodType>(
  request: Sent,
  schema: Schema,
): Promise<z.output<Schema>> {
  const text = await readText(request);
  const checked = schema.safeParse(text === '' ? {} : parse(text));
  if (checked.success) return checked.data;
  throw new Problem('invalid_body', `The body is not acceptable: ${mistakes(checked.error).trim()}`);
}

async function readText(request: Sent): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of request.body ?? []) {
    size += piece.byteLength;
    if (size > MAX_BYTES) {
      throw new Problem('request_too_large', `The body is larger than ${MAX_BYTES} bytes`);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem('invalid_body', 'The body is not JSON');
  }
}
