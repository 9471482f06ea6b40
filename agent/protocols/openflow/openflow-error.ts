/**
 * Why a request did not succeed:
 * `refused` the switch answered with an error; `late` nothing came in time; `lost` the connection ended under it, and
 * whether it was carried out is not known; `malformed` what came was not OpenFlow; `unsupported` the version that was
 * agreed on cannot say it; `full` too much waits already.
 */
export type OpenFlowErrorKind = "refused" | "late" | "lost" | "malformed" | "unsupported" | "full";

export interface Refusal {
  /** The error's type and code as numbers (OpenFlow 1.5.1, 7.5.4). */
  readonly type: number;
  readonly code: number;
  /** As Open vSwitch writes it: `OFPBMC_BAD_PREREQ`; numbers where the table has no name. */
  readonly name: string;
}

/** `message` reads `Cannot <action>: <what is>, wanted <what should be>`. */
export class OpenFlowError extends Error {
  override readonly name = "OpenFlowError";
  readonly kind: OpenFlowErrorKind;
  /** Where `kind` is "refused". */
  readonly refusal: Refusal | undefined;

  /** @param action continues "Cannot …", such as `add flow "table=0, actions=drop"` */
  constructor(kind: OpenFlowErrorKind, action: string, is: string, refusal?: Refusal) {
    super(`Cannot ${action}: ${is}`);
    this.kind = kind;
    this.refusal = refusal;
  }
}

/** Bytes that are not what the specification says they should be. Never trusted, and never the end of the process. */
export class MalformedMessage extends Error {
  override readonly name = "MalformedMessage";

  constructor(what: string, is: string) {
    super(`Cannot read ${what}: ${is}`);
  }
}

/** A flow, group or meter that no switch would take, or would take for something else: refused before it is sent. */
export class InvalidFlow extends Error {
  override readonly name = "InvalidFlow";

  /** @param what continues "Cannot make …" */
  constructor(what: string, is: string) {
    super(`Cannot make ${what}: ${is}`);
  }
}
