/**
 * Reads `text/event-stream` in pieces (the HTML standard's event stream interpretation), giving each event
 * as its name and data. Unlike a browser it keeps an event that the stream's end leaves without its blank
 * line, since the value in it was sent.
 */

export interface StreamEvent {
  readonly name: string;
  readonly data: string;
}

export class EventStreamReader {
  readonly #decoder = new TextDecoder();
  #line = '';
  #afterReturn = false;
  #name = '';
  #data: string[] = [];

  push(chunk: Uint8Array): StreamEvent[] {
    return this.#read(this.#decoder.decode(chunk, { stream: true }));
  }

  end(): StreamEvent[] {
    return this.#read(`${this.#decoder.decode()}\n\n`);
  }

  #read(text: string): StreamEvent[] {
    const events: StreamEvent[] = [];
    let start = 0;
    // CR LF is one line end, even when a piece ends between the two.
    if (this.#afterReturn && text.startsWith('\n')) start = 1;
    if (text !== '') this.#afterReturn = text.endsWith('\r');
    for (;;) {
      const end = lineEnd(text, start);
      if (end < 0) break;
      const event = this.#endLine(this.#line + text.slice(start, end));
      this.#line = '';
      if (event !== undefined) events.push(event);
      start = end + (text.startsWith('\r\n', end) ? 2 : 1);
    }
    this.#line += text.slice(start);
    return events;
  }

  #endLine(line: string): StreamEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#name = value;
    return undefined;
  }

  #dispatch(): StreamEvent | undefined {
    const event = this.#data.length === 0 ? undefined : { name: this.#name, data: this.#data.join('\n') };
    this.#name = '';
    this.#data = [];
    return event;
  }
}

function lineEnd(text: string, from: number): number {
  const feed = text.indexOf('\n', from);
  const carriage = text.indexOf('\r', from);
  if (feed < 0 || carriage < 0) return Math.max(feed, carriage);
  return Math.min(feed, carriage);
}
