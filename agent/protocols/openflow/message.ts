import { headerBytes, MessageType, NiciraMessage, OnfMessage, Vendor, type Version } from "./constants.ts";
import { type ErrorMessage, readError } from "./error-message.ts";
import { type Features, readFeatures } from "./features.ts";
import { type RequestForwarded, readRequestForwarded } from "./flow-monitor.ts";
import { type FlowRemoved, readFlowRemoved } from "./flow-removed.ts";
import type { Frame } from "./frame-reader.ts";
import { type PacketIn, readPacketIn, readPacketIn2 } from "./packet.ts";
import { type PortStatus, readPortStatus } from "./port.ts";
import { WireReader } from "./wire-reader.ts";

/** What the switch tells of by itself. */
export type OpenFlowEvent = PacketIn | PortStatus | FlowRemoved | RequestForwarded;

export const isEvent = (message: Message): message is OpenFlowEvent =>
  ["packet-in", "port-status", "flow-removed", "request-forwarded"].includes(message.t);

/** OFPBCT_*: what is done, or was done, with a bundle. */
export const BundleControl = {
  OPEN_REQUEST: 0,
  OPEN_REPLY: 1,
  CLOSE_REQUEST: 2,
  CLOSE_REPLY: 3,
  COMMIT_REQUEST: 4,
  COMMIT_REPLY: 5,
  DISCARD_REQUEST: 6,
  DISCARD_REPLY: 7,
} as const;

export type Message =
  | { readonly t: "hello" }
  | ErrorMessage
  | { readonly t: "echo-request" | "echo-reply"; readonly data: Uint8Array }
  | ({ readonly t: "features" } & Features)
  /** A part of an answer; its body is read by who asked. */
  | { readonly t: "multipart"; readonly body: Uint8Array }
  | { readonly t: "barrier" }
  | { readonly t: "bundle"; readonly bundle: number; readonly control: number }
  | OpenFlowEvent
  /** Nothing that concerns us. */
  | { readonly t: "other"; readonly type: number };

/**
 * Reads whatever may come from a switch, in 1.3 or 1.5. Total: every frame is a message or a `MalformedMessage`.
 * @throws {MalformedMessage}
 */
export function readMessage(frame: Frame, version: Version): Message {
  const body = new WireReader(frame.bytes, `an OpenFlow message of type ${frame.type}`).skip(headerBytes);
  switch (frame.type) {
    case MessageType.HELLO:
      return { t: "hello" };
    case MessageType.ERROR:
      return readError(body);
    case MessageType.ECHO_REQUEST:
      return { t: "echo-request", data: body.rest() };
    case MessageType.ECHO_REPLY:
      return { t: "echo-reply", data: body.rest() };
    case MessageType.FEATURES_REPLY:
      return { t: "features", ...readFeatures(body) };
    case MessageType.MULTIPART_REPLY:
      return { t: "multipart", body: body.rest() };
    case MessageType.BARRIER_REPLY:
      return { t: "barrier" };
    case MessageType.BUNDLE_CONTROL:
      return readBundle(body);
    case MessageType.PACKET_IN:
      return readPacketIn(body);
    case MessageType.FLOW_REMOVED:
      return readFlowRemoved(body, version);
    case MessageType.PORT_STATUS:
      return readPortStatus(body, version);
    case MessageType.REQUESTFORWARD:
      return readRequestForwarded(body);
    case MessageType.EXPERIMENTER:
      return readExperimenter(body);
    default:
      return { t: "other", type: frame.type };
  }
}

function readExperimenter(body: WireReader): Message {
  const vendor = body.u32();
  const subtype = body.u32();
  if (vendor === Vendor.ONF && subtype === OnfMessage.BUNDLE_CONTROL) return readBundle(body);
  if (vendor === Vendor.NICIRA && subtype === NiciraMessage.PACKET_IN2) return readPacketIn2(body);
  return { t: "other", type: MessageType.EXPERIMENTER };
}

function readBundle(body: WireReader): Message {
  return { t: "bundle", bundle: body.u32(), control: body.u16() };
}
