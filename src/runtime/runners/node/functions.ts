/**
 * Which functions an entry offers: its exported ones, then those of an object exported as default. A
 * function exported as default is `run`, unless there is another. Names that begin with `_` are private,
 * and classes cannot be called.
 */

/** A function as a call reaches it. */
export type Callable = (parameters: object, context: object) => unknown;

export function functionsOf(module: object): ReadonlyMap<string, Callable> {
  const functions = new Map<string, Callable>();
  const add = (name: string, value: unknown, owner?: object): void => {
    // `module.exports` is how Node names a CommonJS module's default a second time.
    if (!isCallable(value) || name.startsWith('_') || name === 'default' || name === 'module.exports') return;
    // A member may use `this`; a name that is exported comes before one of the default's.
    if (!functions.has(name)) functions.set(name, owner === undefined ? value : value.bind(owner));
  };
  for (const [name, value] of Object.entries(module)) add(name, value);
  const main: unknown = 'default' in module ? module.default : undefined;
  if (isCallable(main)) add('run', main);
  else if (typeof main === 'object' && main !== null)
    for (const [name, value] of Object.entries(main)) add(name, value, main);
  return functions;
}

function isCallable(value: unknown): value is Callable {
  return typeof value === 'function' && !/^class\b/.test(Function.prototype.toString.call(value));
}
