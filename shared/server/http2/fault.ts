/** Why a stream or a connection ends (RFC 9113, section 7). */
export const H2Code = {
  noError: 0,
  protocolError: 1,
  flowControlError: 3,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const;

export type H2Code = (typeof H2Code)[keyof typeof H2Code];

/** What the peer did that ends the connection; it is told both. */
export interface Fault {
  readonly code: H2Code;
  /** `<what came>, wanted <what should have>`. */
  readonly is: string;
}
