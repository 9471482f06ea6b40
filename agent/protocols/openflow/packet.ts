import type { Action } from "./action.ts";
import { writeActions } from "./action-writer.ts";
import { bounds } from "./bounds.ts";
import { MessageType, NiciraMessage, noBuffer, Port, Vendor, Version } from "./constants.ts";
import { properties } from "./group.ts";
import { exactly, type Match, match, matchAll } from "./match.ts";
import { readMatch, readOxms, writeMatch, writeOxms } from "./match-wire.ts";
import { InvalidFlow } from "./openflow-error.ts";
import { writeProperty } from "./property.ts";
import type { Request } from "./request.ts";
import type { WireReader } from "./wire-reader.ts";

/** A packet that a flow sent to the controller. */
export interface PacketIn {
  readonly t: "packet-in";
  readonly packet: Uint8Array;
  /** Of the whole packet, which may be longer than what was sent of it. */
  readonly packetBytes: number;
  readonly table: number;
  /** Of the flow that sent it; Open vSwitch does not say it of packets that wait. */
  readonly cookie: bigint | undefined;
  /** OFPR_*: 1 is "action". */
  readonly reason: number;
  /** The registers, the tunnel, the port: what the packet has beside its bytes. */
  readonly metadata: Match;
  readonly inPort: number | undefined;
  /** What the flow's action says of it; empty where packets come in the standard form. */
  readonly userData: Uint8Array;
  /** Set where the packet waits to be resumed. */
  readonly continuation: Uint8Array | undefined;
}

/** OFPT_PACKET_IN (OpenFlow 1.5.1, 7.4.1). @throws {MalformedMessage} */
export function readPacketIn(reader: WireReader): PacketIn {
  const packetBytes = reader.skip(4).u16();
  const [reason, table, cookie] = [reader.u8(), reader.u8(), reader.u64()];
  const metadata = readMatch(reader);
  const packet = reader.skip(2).rest();
  return packetIn({ packet, packetBytes, table, cookie, reason, metadata });
}

function packetIn(given: Partial<PacketIn> & { readonly metadata: Match }): PacketIn {
  const inPort = exactly(given.metadata, "in_port");
  const packet = given.packet ?? new Uint8Array(0);
  return {
    t: "packet-in",
    packet,
    packetBytes: packet.length,
    table: 0,
    cookie: undefined,
    reason: 0,
    userData: new Uint8Array(0),
    continuation: undefined,
    ...given,
    inPort: inPort === undefined ? undefined : Number(inPort),
  };
}

/** NXPINT_* (nicira-ext.h, NXT_PACKET_IN2). */
const PacketProperty = {
  PACKET: 0,
  FULL_LEN: 1,
  TABLE_ID: 3,
  COOKIE: 4,
  REASON: 5,
  METADATA: 6,
  USERDATA: 7,
  CONTINUATION: 8,
} as const;

/** NXT_PACKET_IN2, behind its subtype: with the flow's user data, and resumable. @throws {MalformedMessage} */
export function readPacketIn2(reader: WireReader): PacketIn {
  const found: { -readonly [K in keyof PacketIn]?: PacketIn[K] } = {};
  let metadata: Match = matchAll;
  for (const { code, body } of properties(reader)) {
    if (code === PacketProperty.PACKET) found.packet = body.rest();
    else if (code === PacketProperty.FULL_LEN) found.packetBytes = body.u32();
    else if (code === PacketProperty.TABLE_ID) found.table = body.u8();
    else if (code === PacketProperty.COOKIE) found.cookie = body.skip(4).u64();
    else if (code === PacketProperty.REASON) found.reason = body.u8();
    else if (code === PacketProperty.METADATA) metadata = readOxms(body);
    else if (code === PacketProperty.USERDATA) found.userData = body.rest();
    // It is padded inside of its property, and goes back as it came.
    else if (code === PacketProperty.CONTINUATION) found.continuation = body.rest();
  }
  return packetIn({ packetBytes: found.packet?.length ?? 0, ...found, metadata });
}

/** From now on packets come as NXT_PACKET_IN2. */
export const usePacketIn2: Request = {
  action: "choose the form of packets",
  type: MessageType.EXPERIMENTER,
  body: (writer) => writer.u32(Vendor.NICIRA).u32(NiciraMessage.SET_PACKET_IN_FORMAT).u32(2),
};

/** Lets a packet go on that waits (NXT_RESUME), as if it had never stopped. @throws {InvalidFlow} where it does not wait */
export function resumePacket(waiting: PacketIn): Request {
  const { continuation } = waiting;
  if (continuation === undefined) throw new InvalidFlow("a resumed packet", "it does not wait");
  return {
    action: "resume a packet",
    type: MessageType.EXPERIMENTER,
    body: (writer) => {
      writer.u32(Vendor.NICIRA).u32(NiciraMessage.RESUME);
      writeProperty(writer, PacketProperty.PACKET, () => writer.bytes(waiting.packet));
      writeProperty(writer, PacketProperty.METADATA, () => writeOxms(writer, waiting.metadata));
      writeProperty(writer, PacketProperty.CONTINUATION, () => writer.bytes(continuation));
    },
  };
}

/**
 * OFPT_PACKET_OUT (7.3.6): the actions are done to a packet as if it had come in at `inPort`; on Windows that has to be
 * a port that exists, LOCAL, and not CONTROLLER.
 * @throws {InvalidFlow}
 */
export function packetOut(packet: Uint8Array, actions: readonly Action[], inPort: number = Port.CONTROLLER): Request {
  if (packet.length > bounds.packetBytes) {
    throw new InvalidFlow("a packet", `it has ${packet.length} bytes, wanted ${bounds.packetBytes} at the most`);
  }
  return {
    action: `send a packet of ${packet.length} bytes`,
    type: MessageType.PACKET_OUT,
    body: (writer, version) => {
      writer.u32(noBuffer);
      const isNew = version >= Version.v15;
      if (!isNew) writer.u32(inPort);
      const lengthAt = writer.length;
      writer.u16(0).zeros(isNew ? 2 : 6);
      if (isNew) writeMatch(writer, match().set("in_port", inPort).build());
      const start = writer.length;
      writeActions(writer, actions, version);
      writer.setU16(lengthAt, writer.length - start);
      writer.bytes(packet);
    },
  };
}
