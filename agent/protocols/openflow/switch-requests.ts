import type { Ip } from "../../../shared/net/ip.ts";
import { type Action, reasonAction } from "./action.ts";
import { writeActions } from "./action-writer.ts";
import { MessageType, noBuffer, Port, Vendor } from "./constants.ts";
import { match } from "./match.ts";
import { writeMatch } from "./match-wire.ts";
import { InvalidFlow } from "./openflow-error.ts";
import type { Request } from "./request.ts";
import { type WireWriter, writeProperty } from "./wire-writer.ts";

/** What a switch is asked for beside flows, groups and meters. */

/** OFPACPT_*, each for a connection in the role "slave"; one more for the others. */
const AsyncProperty = { packetIn: 0, portStatus: 2, flowRemoved: 4, requestForward: 10 } as const;
/** OFPRFR_GROUP_MOD and OFPRFR_METER_MOD. */
const groupsAndMeters = 0x3;
/** OFPR_APPLY_ACTION: an action of a flow, which is not the last one of an action set. */
const flowActions = 1 << reasonAction;

/** OFPT_SET_ASYNC (OpenFlow 1.5.1, 7.3.10), for whatever role the connection has: of this, and of nothing else. */
const tellOf = (told: keyof typeof AsyncProperty, why: number): Request => ({
  action: "choose what to be told of",
  type: MessageType.SET_ASYNC,
  body: (writer) => {
    for (const property of Object.values(AsyncProperty)) {
      const reasons = property === AsyncProperty[told] ? why : 0;
      for (const role of [0, 1])
        writer
          .u16(property + role)
          .u16(8)
          .u32(reasons);
    }
  },
});

/** The switch tells of groups and meters that somebody else changes (`request-forwarded`). */
export const forwardRequests = tellOf("requestForward", groupsAndMeters);
/** It tells of packets that flows send to the controller (`packet-in`). */
export const forwardPackets = tellOf("packetIn", flowActions);

/** How fragments are matched: `nx-match` lets flows ask for ip_frag and hides ports of later fragments only. */
const fragments = { normal: 0, drop: 1, reassemble: 2, "nx-match": 3 } as const;

/** OFPT_SET_CONFIG (7.3.2). @param missSendBytes of packets that no flow matched and a controller is told of */
export const setConfig = (handling: keyof typeof fragments, missSendBytes: number): Request => ({
  action: `set fragments to "${handling}"`,
  type: MessageType.SET_CONFIG,
  body: (writer) => writer.u16(fragments[handling]).u16(missSendBytes),
});

/** A packet inside of a message: what is left of 64 KiB by the heads around it. */
const maxPacketBytes = 0xffff - 2048;

/**
 * OFPT_PACKET_OUT (7.3.6): the actions are done to a packet as if it had come in at `inPort`; on Windows that has to be
 * a port that exists, LOCAL, and not CONTROLLER.
 * @throws {InvalidFlow}
 */
export function packetOut(packet: Uint8Array, actions: readonly Action[], inPort: number = Port.CONTROLLER): Request {
  if (packet.length > maxPacketBytes) {
    throw new InvalidFlow("a packet", `it has ${packet.length} bytes, wanted ${maxPacketBytes} at the most`);
  }
  return {
    action: `send a packet of ${packet.length} bytes`,
    type: MessageType.PACKET_OUT,
    body: (writer) => {
      writer.u32(noBuffer);
      const lengthAt = writer.length;
      writer.u16(0).zeros(2);
      writeMatch(writer, match().set("in_port", inPort).build());
      const start = writer.length;
      writeActions(writer, actions);
      writer.setU16(lengthAt, writer.length - start);
      writer.bytes(packet);
    },
  };
}

/** One direction of a connection, as far as it is said. */
export interface FlushedTuple {
  readonly source?: Ip;
  readonly destination?: Ip;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
}

/** Which tracked connections: those that have all of it. */
export interface FlushedConnections {
  readonly protocol: "tcp" | "udp" | "sctp";
  readonly zone: number;
  /** As its first packet was, before translation. */
  readonly original?: FlushedTuple;
  /** As its answers come. */
  readonly reply?: FlushedTuple;
}

const protocolNumbers = { tcp: 6, udp: 17, sctp: 132 } as const;
/** NXT_CT_FLUSH of nicira-ext.h, and the types of its properties. */
const ctFlush = 32;
const Property = { original: 0, reply: 1, zone: 2 } as const;
const TupleProperty = { source: 0, destination: 1, sourcePort: 2, destinationPort: 3 } as const;
const mapped = 0xffff_0000_0000n;

/** Has the switch forget tracked connections (NXT_CT_FLUSH, Open vSwitch 3.1). */
export const flushConnections = ({ protocol, zone, original, reply }: FlushedConnections): Request => ({
  action: `forget ${protocol} connections of zone ${zone}`,
  type: MessageType.EXPERIMENTER,
  body: (writer) => {
    writer.u32(Vendor.NICIRA).u32(ctFlush).u8(protocolNumbers[protocol]).zeros(7);
    if (original !== undefined) writeTuple(writer, Property.original, original);
    if (reply !== undefined) writeTuple(writer, Property.reply, reply);
    writeProperty(writer, Property.zone, () => writer.u16(zone));
  },
});

function writeTuple(writer: WireWriter, type: number, tuple: FlushedTuple): void {
  writeProperty(writer, type, () => {
    writer.zeros(4);
    for (const side of ["source", "destination"] as const) {
      const ip = tuple[side];
      if (ip === undefined) continue;
      const value = ip.family === 4 ? mapped | ip.value : ip.value;
      writeProperty(writer, TupleProperty[side], () => writer.uint(value, 16));
    }
    for (const side of ["sourcePort", "destinationPort"] as const) {
      const port = tuple[side];
      if (port !== undefined) writeProperty(writer, TupleProperty[side], () => writer.u16(port));
    }
  });
}
