import type { Frame } from "../../rpc/h2-frames.ts";

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

/** Whatever is no HTTP/2. */
export const broken = (is: string): Fault => ({ code: H2Code.protocolError, is: `${is}, wanted HTTP/2` });

/** A frame whose type has another length. */
export const wrongSize = (name: string, { payload }: Frame): Fault => ({
  code: H2Code.frameSizeError,
  is: `${name} came with ${payload.length} bytes, wanted its length`,
});
