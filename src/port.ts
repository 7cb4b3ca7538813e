/**
 * Messages to and from another process of the service, of one kind each way. What is sent to one that is gone
 * is lost; that it is gone is told elsewhere.
 */
export interface Port<Out, In> {
  send(message: Out): void;
  /** Before the first message can come; there is one listener. */
  listen(listener: (message: In) => void): void;
}
