import { headerBytes, Vendor } from "./constants.ts";
import { errorHint, errorName, vendorErrorName } from "./error-names.ts";
import { OpenFlowError, type Refusal } from "./openflow-error.ts";
import type { WireReader } from "./wire-reader.ts";

export interface ErrorMessage extends Refusal {
  readonly t: "error";
  /** What the switch sends back of the message: its first 64 bytes at least. HELLO_FAILED has a sentence here. */
  readonly data: Uint8Array;
}

const experimenter = 0xffff;
const helloFailed = 0;

/** OFPT_ERROR (OpenFlow 1.5.1, 7.5.4). @throws {MalformedMessage} */
export function readError(reader: WireReader): ErrorMessage {
  const type = reader.u16();
  const code = reader.u16();
  if (type !== experimenter) return { t: "error", type, code, name: errorName(type, code), data: reader.rest() };
  const vendor = reader.u32();
  const isKnown = vendor === Vendor.NICIRA || vendor === Vendor.ONF;
  const name = isKnown
    ? vendorErrorName(vendor === Vendor.NICIRA, code)
    : `error ${code} of experimenter 0x${vendor.toString(16)}`;
  return { t: "error", type, code, name, data: reader.rest() };
}

/** @param action of the request that the switch says no to */
export function refusedBy(error: ErrorMessage, action: string): OpenFlowError {
  const hint = error.type === helloFailed ? new TextDecoder().decode(error.data) : errorHint(error.name);
  const is = `the switch answers ${error.name}${hint === undefined || hint === "" ? "" : ` (${hint})`}`;
  return new OpenFlowError("refused", action, is, { type: error.type, code: error.code, name: error.name });
}

/** The type of the message that an error is about, where it says it. */
export function typeOfCause(error: ErrorMessage): number | undefined {
  return error.data.length >= headerBytes ? error.data[1] : undefined;
}
