import { GrpcCode } from "./rpc-error.ts";

/** What ends a call, said by the part that saw it: the middle of an error message, and its code. */
export interface Problem {
  readonly code: GrpcCode;
  /** `<what is>, wanted <what should be>`. */
  readonly is: string;
}

/** The server sent what HTTP/2 forbids. */
export const broken = (found: string): Problem => ({
  code: GrpcCode.internal,
  is: `the server broke HTTP/2 with ${found}, wanted an answer`,
});
