import type { Ip } from "../../../shared/net/ip.ts";
import { MessageType, NiciraMessage, Vendor } from "./constants.ts";
import { writeProperty } from "./property.ts";
import type { Request } from "./request.ts";
import type { WireWriter } from "./wire-writer.ts";

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
/** Types of properties (nicira-ext.h, NXT_CT_FLUSH). */
const Property = { original: 0, reply: 1, zone: 2 } as const;
const TupleProperty = { source: 0, destination: 1, sourcePort: 2, destinationPort: 3 } as const;
const mapped = 0xffff_0000_0000n;

/** Has the switch forget tracked connections (NXT_CT_FLUSH, Open vSwitch 3.1). */
export const flushConnections = ({ protocol, zone, original, reply }: FlushedConnections): Request => ({
  action: `forget ${protocol} connections of zone ${zone}`,
  type: MessageType.EXPERIMENTER,
  body: (writer) => {
    writer.u32(Vendor.NICIRA).u32(NiciraMessage.CT_FLUSH).u8(protocolNumbers[protocol]).zeros(7);
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
