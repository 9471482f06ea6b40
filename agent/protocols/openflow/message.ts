import { headerBytes, MessageType } from "./constants.ts";
import { type ErrorMessage, readError } from "./error-message.ts";
import { type RequestForwarded, readRequestForwarded } from "./flow-monitor.ts";
import type { Match } from "./match.ts";
import { readMatch } from "./match-wire.ts";
import { MalformedMessage } from "./openflow-error.ts";
import { WireReader } from "./wire-reader.ts";

/** One message with its header (OpenFlow 1.5.1, 7.1.1). */
export interface Frame {
  readonly version: number;
  readonly type: number;
  readonly xid: number;
  /** All of it. Its own bytes: nothing else writes there. */
  readonly bytes: Uint8Array;
}

const nothing = new Uint8Array(0);

/** Cuts what arrives into messages. Holds at most one that has not come whole, which is 64 KiB at the most. */
export class FrameReader {
  #held = nothing;
  /** Of `#held`, how much has come. */
  #filled = 0;

  /**
   * The messages that are whole with `chunk`, which may be cut anywhere. The array may be reused afterwards.
   * @throws {MalformedMessage} where a length is impossible: nothing behind it can be read any more
   */
  *push(chunk: Uint8Array): Generator<Frame> {
    let at = 0;
    while (at < chunk.length) {
      const wanted = this.#filled < headerBytes ? headerBytes : this.#held.length;
      if (this.#held.length < wanted) this.#held = new Uint8Array(wanted);
      const part = chunk.subarray(at, at + wanted - this.#filled);
      this.#held.set(part, this.#filled);
      this.#filled += part.length;
      at += part.length;
      if (this.#filled < wanted) return;
      if (wanted === headerBytes && this.#grow()) continue;
      yield this.#finish();
    }
  }

  /** Whether more than the header is to come. */
  #grow(): boolean {
    const length = new DataView(this.#held.buffer).getUint16(2);
    if (length < headerBytes) {
      throw new MalformedMessage("an OpenFlow message", `it says ${length} bytes, wanted ${headerBytes} at least`);
    }
    if (length === headerBytes) return false;
    const whole = new Uint8Array(length);
    whole.set(this.#held);
    this.#held = whole;
    return true;
  }

  #finish(): Frame {
    const bytes = this.#held;
    const view = new DataView(bytes.buffer);
    this.#held = nothing;
    this.#filled = 0;
    return { version: bytes[0] ?? 0, type: bytes[1] ?? 0, xid: view.getUint32(4), bytes };
  }
}

/** OFPT_FEATURES_REPLY (OpenFlow 1.5.1, 7.3.1). */
export interface Features {
  /** 64 bits that name the bridge, 48 of them usually its MAC. */
  readonly datapathId: bigint;
  readonly tables: number;
  readonly capabilities: number;
}

/** OFPT_PACKET_IN (7.4.1): a packet that a flow sends to the controller. */
export interface PacketIn {
  readonly t: "packet-in";
  /** The table of that flow, and its cookie. */
  readonly table: number;
  readonly cookie: bigint;
  /** Registers and what else goes with a packet, as they are there. */
  readonly match: Match;
  /** From its Ethernet header on, and as much of it as the flow sends. */
  readonly packet: Uint8Array;
}

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
  | RequestForwarded
  | PacketIn
  /** Nothing that concerns us. */
  | { readonly t: "other"; readonly type: number };

/**
 * Reads whatever may come from a switch. Total: every frame is a message or a `MalformedMessage`.
 * @throws {MalformedMessage}
 */
export function readMessage(frame: Frame): Message {
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
      return { t: "bundle", bundle: body.u32(), control: body.u16() };
    case MessageType.REQUESTFORWARD:
      return readRequestForwarded(body);
    case MessageType.PACKET_IN:
      return readPacketIn(body);
    default:
      return { t: "other", type: frame.type };
  }
}

/** @throws {MalformedMessage} */
function readPacketIn(reader: WireReader): PacketIn {
  // Behind the buffer's number, the packet's length and the reason.
  const table = reader.skip(7).u8();
  const cookie = reader.u64();
  const match = readMatch(reader);
  return { t: "packet-in", table, cookie, match, packet: reader.skip(2).rest() };
}

/** @throws {MalformedMessage} */
function readFeatures(reader: WireReader): Features {
  const datapathId = reader.u64();
  const tables = reader.skip(4).u8();
  return { datapathId, tables, capabilities: reader.skip(3).u32() };
}
