import { headerBytes, Vendor } from "./constants.ts";
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

/**
 * Names of OFPT_ERROR's types and codes as Open vSwitch writes them (OpenFlow 1.5.1, 7.5.4; ofp-errors.h): per type,
 * the codes in order. A name that begins with OFP stands for itself: some properties' errors have type 13 in 1.3.
 */
const tables: Readonly<Record<number, readonly [prefix: string, codes: string]>> = {
  0: ["OFPHFC", "INCOMPATIBLE EPERM"],
  1: [
    "OFPBRC",
    "BAD_VERSION BAD_TYPE BAD_STAT BAD_VENDOR BAD_SUBTYPE EPERM BAD_LEN BUFFER_EMPTY BUFFER_UNKNOWN BAD_TABLE_ID " +
      "IS_SECONDARY BAD_PORT BAD_PACKET MULTIPART_BUFFER_OVERFLOW MULTIPART_REQUEST_TIMEOUT MULTIPART_REPLY_TIMEOUT " +
      "MULTIPART_BAD_SCHED PIPELINE_FIELDS_ONLY UNKNOWN",
  ],
  2: [
    "OFPBAC",
    "BAD_TYPE BAD_LEN BAD_VENDOR BAD_VENDOR_TYPE BAD_OUT_PORT BAD_ARGUMENT EPERM TOO_MANY BAD_QUEUE BAD_OUT_GROUP " +
      "MATCH_INCONSISTENT UNSUPPORTED_ORDER BAD_TAG BAD_SET_TYPE BAD_SET_LEN BAD_SET_ARGUMENT BAD_SET_MASK BAD_METER",
  ],
  3: [
    "OFPBIC",
    "UNKNOWN_INST UNSUP_INST BAD_TABLE_ID UNSUP_METADATA UNSUP_METADATA_MASK BAD_EXPERIMENTER BAD_EXP_TYPE BAD_LEN " +
      "EPERM DUP_INST",
  ],
  4: [
    "OFPBMC",
    "BAD_TYPE BAD_LEN BAD_TAG BAD_DL_ADDR_MASK BAD_NW_ADDR_MASK BAD_WILDCARDS BAD_FIELD BAD_VALUE BAD_MASK BAD_PREREQ " +
      "DUP_FIELD EPERM",
  ],
  5: [
    "OFPFMFC",
    "UNKNOWN TABLE_FULL BAD_TABLE_ID OVERLAP EPERM BAD_TIMEOUT BAD_COMMAND BAD_FLAGS CANT_SYNC BAD_PRIORITY IS_SYNC",
  ],
  6: [
    "OFPGMFC",
    "GROUP_EXISTS INVALID_GROUP WEIGHT_UNSUPPORTED OUT_OF_GROUPS OUT_OF_BUCKETS CHAINING_UNSUPPORTED " +
      "WATCH_UNSUPPORTED LOOP UNKNOWN_GROUP CHAINED_GROUP BAD_TYPE BAD_COMMAND BAD_BUCKET BAD_WATCH EPERM " +
      "UNKNOWN_BUCKET BUCKET_EXISTS",
  ],
  7: ["OFPPMFC", "BAD_PORT BAD_HW_ADDR BAD_CONFIG BAD_ADVERTISE EPERM"],
  8: ["OFPTMFC", "BAD_TABLE BAD_CONFIG EPERM"],
  9: ["OFPQOFC", "BAD_PORT BAD_QUEUE EPERM"],
  10: ["OFPSCFC", "BAD_FLAGS BAD_LEN EPERM"],
  11: ["OFPRRFC", "STALE UNSUP BAD_ROLE ID_UNSUP ID_IN_USE"],
  12: [
    "OFPMMFC",
    "UNKNOWN METER_EXISTS INVALID_METER UNKNOWN_METER BAD_COMMAND BAD_FLAGS BAD_RATE BAD_BURST BAD_BAND " +
      "BAD_BAND_VALUE OUT_OF_METERS OUT_OF_BANDS",
  ],
  13: [
    "OFPTFFC",
    "BAD_TABLE BAD_METADATA OFPBPC_BAD_TYPE OFPBPC_BAD_LEN OFPBPC_BAD_VALUE EPERM BAD_CAPA BAD_MAX_ENT BAD_FEATURES " +
      "BAD_COMMAND TOO_MANY",
  ],
  14: ["OFPBPC", "BAD_TYPE BAD_LEN BAD_VALUE TOO_MANY DUP_TYPE BAD_EXPERIMENTER BAD_EXP_TYPE BAD_EXP_VALUE EPERM"],
  15: ["OFPACFC", "INVALID UNSUPPORTED EPERM"],
  16: ["OFPMOFC", "UNKNOWN MONITOR_EXISTS INVALID_MONITOR UNKNOWN_MONITOR BAD_COMMAND BAD_FLAGS BAD_TABLE_ID BAD_OUT"],
  17: [
    "OFPBFC",
    "UNKNOWN EPERM BAD_ID BUNDLE_EXIST BUNDLE_CLOSED OUT_OF_BUNDLES BAD_TYPE BAD_FLAGS MSG_BAD_LEN MSG_BAD_XID " +
      "MSG_UNSUP MSG_CONFLICT MSG_TOO_MANY MSG_FAILED TIMEOUT BUNDLE_IN_PROGRESS SCHED_NOT_SUPPORTED SCHED_FUTURE " +
      "SCHED_PAST",
  ],
};

/** Errors of Nicira's extensions, by the code in their own numbering. */
const nicira: Readonly<Record<number, string>> = {
  2: "NXBRC_NXM_INVALID",
  3: "NXBRC_NXM_BAD_TYPE",
  4: "NXBRC_MUST_BE_ZERO",
  5: "NXBRC_BAD_REASON",
  6: "OFPMOFC_MONITOR_EXISTS",
  7: "OFPMOFC_BAD_FLAGS",
  8: "OFPMOFC_UNKNOWN_MONITOR",
  9: "NXBRC_FM_BAD_EVENT",
  10: "NXBRC_UNENCODABLE_ERROR",
  11: "NXBAC_MUST_BE_ZERO",
  12: "NXFMFC_HARDWARE",
  13: "NXFMFC_BAD_TABLE_ID",
  15: "NXBAC_BAD_CONJUNCTION",
  16: "NXTTMFC_BAD_COMMAND",
  17: "NXTTMFC_BAD_OPT_LEN",
  18: "NXTTMFC_BAD_FIELD_IDX",
  19: "NXTTMFC_TABLE_FULL",
  20: "NXTTMFC_ALREADY_MAPPED",
  21: "NXTTMFC_DUP_ENTRY",
  22: "OFPBFC_BAD_VERSION",
  23: "NXQOFC_QUEUE_ERROR",
  34: "NXR_NOT_SUPPORTED",
  35: "NXR_STALE",
  36: "NXST_NOT_CONFIGURED",
  37: "NXFMFC_INVALID_TLV_FIELD",
  38: "NXTTMFC_INVALID_TLV_DEL",
  39: "NXBAC_BAD_HEADER_TYPE",
  40: "NXBAC_UNKNOWN_ED_PROP",
  41: "NXBAC_BAD_ED_PROP",
  42: "NXBAC_CT_DATAPATH_SUPPORT",
  43: "NXBMC_CT_DATAPATH_SUPPORT",
  44: "NXTFFC_DUP_TABLE",
};

/** ONF's numbers for what 1.3 lacks: bundles are 2300 and on, their order as above; the rest one by one. */
const onfBundle = 2300;
const onfOther: Readonly<Record<number, string>> = {
  2360: "OFPFMFC_BAD_PRIORITY",
  2370: "OFPACFC_INVALID",
  2371: "OFPACFC_UNSUPPORTED",
  2372: "OFPACFC_EPERM",
  2600: "OFPBIC_DUP_INST",
  2640: "OFPBRC_MULTIPART_REQUEST_TIMEOUT",
  2641: "OFPBRC_MULTIPART_REPLY_TIMEOUT",
  4250: "OFPBAC_BAD_SET_MASK",
};

const split = new Map<number, readonly [string, readonly string[]]>(
  Object.entries(tables).map(([type, [prefix, codes]]) => [Number(type), [prefix, codes.split(" ")]]),
);

/** `OFPBMC_BAD_PREREQ`; where the tables have no name, `error type 4 code 99`. */
function errorName(type: number, code: number): string {
  const [prefix, codes] = split.get(type) ?? ["", []];
  const name = codes[code];
  if (name === undefined) return `error type ${type} code ${code}`;
  return name.startsWith("OFP") ? name : `${prefix}_${name}`;
}

/** The same of an experimenter's error. */
function vendorErrorName(isNicira: boolean, code: number): string {
  if (isNicira) return nicira[code] ?? `Nicira's error ${code}`;
  if (onfOther[code] !== undefined) return onfOther[code];
  const bundle = split.get(17)?.[1][code - onfBundle];
  return bundle === undefined ? `ONF's error ${code}` : `OFPBFC_${bundle}`;
}

/** What the commonest refusals mean, for people. */
const hints: Readonly<Record<string, string>> = {
  OFPBMC_BAD_PREREQ: "a field needs one before it that is missing",
  OFPBAC_MATCH_INCONSISTENT: "an action needs what the match does not say",
  OFPBAC_BAD_OUT_GROUP: "there is no such group",
  OFPBAC_BAD_METER: "there is no such meter",
  OFPMMFC_INVALID_METER: "there is no such meter",
  OFPFMFC_BAD_TABLE_ID: "there is no such table",
  OFPFMFC_OVERLAP: "another flow of this priority overlaps with it",
  OFPGMFC_GROUP_EXISTS: "the group is there already",
  OFPGMFC_UNKNOWN_GROUP: "there is no such group",
  OFPMMFC_METER_EXISTS: "the meter is there already",
  OFPMMFC_UNKNOWN_METER: "there is no such meter",
  OFPBFC_MSG_FAILED: "a message of the bundle failed",
  OFPBRC_EPERM: "this connection may not",
};

/** `undefined` where the name says enough. */
const errorHint = (name: string): string | undefined => hints[name];
