import { MessageType, Version } from "./constants.ts";
import type { Request } from "./request.ts";
import type { WireWriter } from "./wire-writer.ts";

/** What the switch is to tell of by itself; a connection to its .mgmt socket is told nothing until it asks. */
export interface Wanted {
  readonly packets: boolean;
  readonly ports: boolean;
  /** Flows with the flag send_flow_rem. */
  readonly removedFlows: boolean;
  /** Groups and meters that somebody else changes; 1.3 cannot tell. */
  readonly requests?: boolean;
}

/** All reasons that this version has, each a bit: OFPR_*, OFPPR_*, OFPRR_*, OFPRFR_*. */
const reasons = { packets: 0x3f, ports: 0x7, removedFlows: 0x3f, requests: 0x3 } as const;
/** OFPACPT_*, for a connection in the role "slave"; one more for the others. */
const properties = { packets: 0, ports: 2, removedFlows: 4, requests: 10 } as const;
/** 1.3 knows fewer. */
const reasons13 = { packets: 0x7, ports: 0x7, removedFlows: 0xf } as const;

/** OFPT_SET_ASYNC (OpenFlow 1.5.1, 7.3.10), for whatever role the connection has. */
export const setAsync = (wanted: Wanted): Request => ({
  action: "choose what to be told of",
  type: MessageType.SET_ASYNC,
  body: (writer, version) => (version < Version.v15 ? writeMasks(writer, wanted) : writeProperties(writer, wanted)),
});

function writeMasks(writer: WireWriter, wanted: Wanted): void {
  for (const kind of ["packets", "ports", "removedFlows"] as const) {
    const mask = wanted[kind] ? reasons13[kind] : 0;
    writer.u32(mask).u32(mask);
  }
}

function writeProperties(writer: WireWriter, wanted: Wanted): void {
  for (const kind of ["packets", "ports", "removedFlows", "requests"] as const) {
    const mask = wanted[kind] ? reasons[kind] : 0;
    for (const role of [0, 1])
      writer
        .u16(properties[kind] + role)
        .u16(8)
        .u32(mask);
  }
}

/** How fragments are matched: `nx-match` lets flows ask for ip_frag and hides ports of later fragments only. */
const fragments = { normal: 0, drop: 1, reassemble: 2, "nx-match": 3 } as const;

/** OFPT_SET_CONFIG (7.3.2). @param missSendBytes of packets that no flow matched and a controller is told of */
export const setConfig = (handling: keyof typeof fragments, missSendBytes: number): Request => ({
  action: `set fragments to "${handling}"`,
  type: MessageType.SET_CONFIG,
  body: (writer) => writer.u16(fragments[handling]).u16(missSendBytes),
});
