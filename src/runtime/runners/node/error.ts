/**
 * Errors as the caller gets them: the class and the message, never the stack.
 */
import { inspect } from 'node:util';
import { isNativeError } from 'node:util/types';

/** A call that does not come to run a function, for a reason that lies with the caller. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, type: string, message: string) {
    super(message);
    this.name = type;
    this.status = status;
  }
}

/** A result that JSON cannot hold. */
export class UnserializableResult extends Error {
  override readonly name = 'UnserializableResult';
}

export interface ErrorDescription {
  readonly type: string;
  readonly message: string;
}

export function describeError(thrown: unknown): ErrorDescription {
  if (!(thrown instanceof Error || isNativeError(thrown))) return { type: 'Error', message: textOf(thrown) };
  return { type: nameOf(thrown), message: textOf(thrown.message) };
}

/** The name that the error or its class was given, else that of the class: many extend Error and set none. */
function nameOf(error: Error): string {
  const prototype = Object.getPrototypeOf(error) as object;
  const given = Object.hasOwn(error, 'name') || Object.hasOwn(prototype, 'name');
  return textOf(given ? error.name : error.constructor.name) || 'Error';
}

/** Anything can be thrown, and anything be put into an error. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : inspect(value);
}

/** Prints it with its stack, within the call that it belongs to. */
export function report(error: unknown): void {
  // Of a result there is no use for the stack: the function has returned, and no line of it is to blame.
  console.error(error instanceof UnserializableResult ? `${error.name}: ${error.message}` : error);
}
