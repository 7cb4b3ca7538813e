/** What a store takes for a run id: a UUIDv7 in lower case. */

const RUN_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export function isRunId(text: string): boolean {
  return RUN_ID.test(text);
}
