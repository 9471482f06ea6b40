import { bytes, int32, type MessageOf, message, nested, repeated, text } from "./wire.ts";

/**
 * The messages of `cni.proto`, proto3: a scalar that is absent reads as its zero value, an absent
 * message as `undefined`. A test holds these tables against the text of the proto file.
 */

/** `google.protobuf.Any`: a message with its type. */
export const Any = message({ typeUrl: text(1), value: bytes(2) });
export type Any = MessageOf<typeof Any>;

/** `ErrorCode`: the codes of `CniCode`, and 0 for whatever has none. `Error` in the proto. */
export const CmdError = message({
  code: int32(1),
  message: text(2),
  details: repeated(3, Any),
});
export type CmdError = MessageOf<typeof CmdError>;

export const CniCmdArgs = message({
  containerId: text(1),
  netns: text(2),
  ifname: text(3),
  args: text(4),
  path: text(5),
  networkConfiguration: bytes(6),
});
export type CniCmdArgs = MessageOf<typeof CniCmdArgs>;

export const CniCmdRequest = message({ cniArgs: nested(1, CniCmdArgs) });
export type CniCmdRequest = MessageOf<typeof CniCmdRequest>;

export const CniCmdResponse = message({
  cniResult: bytes(1),
  error: nested(2, CmdError),
});
export type CniCmdResponse = MessageOf<typeof CniCmdResponse>;
