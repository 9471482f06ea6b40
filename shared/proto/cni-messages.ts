import { bytes, int32, type MessageCodec, message, nested, repeated, text } from "./wire.ts";

/**
 * The messages of `cni.proto`, proto3: a scalar that is absent reads as its zero value, an absent
 * message as `undefined`. A test holds these tables against the text of the proto file.
 */

/** `ErrorCode`: the codes of `CniCode`, and 0 for whatever has none. */
export interface CmdError {
  readonly code: number;
  readonly message: string;
  readonly details: readonly Any[];
}

/** `google.protobuf.Any`: a message with its type. */
export interface Any {
  readonly typeUrl: string;
  readonly value: Uint8Array;
}

export interface CniCmdArgs {
  readonly containerId: string;
  readonly netns: string;
  readonly ifname: string;
  readonly args: string;
  readonly path: string;
  readonly networkConfiguration: Uint8Array;
}

export interface CniCmdRequest {
  readonly cniArgs?: CniCmdArgs | undefined;
}

export interface CniCmdResponse {
  readonly cniResult: Uint8Array;
  readonly error?: CmdError | undefined;
}

export const Any: MessageCodec<Any> = message<Any>({ typeUrl: text(1), value: bytes(2) });

/** `Error` in the proto. */
export const CmdError: MessageCodec<CmdError> = message<CmdError>({
  code: int32(1),
  message: text(2),
  details: repeated(3, Any),
});

export const CniCmdArgs: MessageCodec<CniCmdArgs> = message<CniCmdArgs>({
  containerId: text(1),
  netns: text(2),
  ifname: text(3),
  args: text(4),
  path: text(5),
  networkConfiguration: bytes(6),
});

export const CniCmdRequest: MessageCodec<CniCmdRequest> = message<CniCmdRequest>({ cniArgs: nested(1, CniCmdArgs) });

export const CniCmdResponse: MessageCodec<CniCmdResponse> = message<CniCmdResponse>({
  cniResult: bytes(1),
  error: nested(2, CmdError),
});
