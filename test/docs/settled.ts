/**
 * What a document shows of a program's output, and what the program prints now, made comparable.
 */

/** What differs from run to run. */
export function settled(printed: string): string {
  return printed
    .replaceAll(/127\.0\.0\.1(:|%3A)\d+/g, '127.0.0.1$1PORT')
    .replaceAll(/Bearer [\w.…-]+/g, 'Bearer TOKEN')
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'RUN')
    .replaceAll(/(?:\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.\d{3}/g, 'TIME')
    .replaceAll(/("run_time_ms": ?)[\d.]+/g, '$1MS')
    .replaceAll(/\d+ bytes/g, 'N bytes')
    .trim();
}
