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

/** The fault of the peer that ends the connection; both are sent to it. */
export interface Fault {
  readonly code: H2Code;
  /** `<what came>, wanted <what should have>`. */
  readonly is: string;
}

/** The fault for anything that is no valid HTTP/2. */
export const broken = (is: string): Fault => ({ code: H2Code.protocolError, is: `${is}, wanted HTTP/2` });

/** The fault for a frame of the wrong length for its type. */
export const wrongSize = (name: string, { payload }: Frame): Fault => ({
  code: H2Code.frameSizeError,
  is: `${name} came with ${payload.length} bytes, wanted its length`,
});
