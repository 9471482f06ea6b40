/**
 * Numbers of the wire: openflow.h of OpenFlow 1.5.1, and nicira-ext.h for the Nicira extensions. Names as there,
 * without their prefix.
 */

/** OpenFlow 1.5 by its number on the wire (`ofp_header.version`). */
export const wireVersion = 6;

export const MessageType = {
  HELLO: 0,
  ERROR: 1,
  ECHO_REQUEST: 2,
  ECHO_REPLY: 3,
  EXPERIMENTER: 4,
  FEATURES_REQUEST: 5,
  FEATURES_REPLY: 6,
  SET_CONFIG: 9,
  PACKET_IN: 10,
  PACKET_OUT: 13,
  FLOW_MOD: 14,
  GROUP_MOD: 15,
  MULTIPART_REQUEST: 18,
  MULTIPART_REPLY: 19,
  BARRIER_REQUEST: 20,
  BARRIER_REPLY: 21,
  SET_ASYNC: 28,
  METER_MOD: 29,
  REQUESTFORWARD: 32,
  BUNDLE_CONTROL: 33,
  BUNDLE_ADD_MESSAGE: 34,
} as const;

export const MultipartType = {
  FLOW_DESC: 1,
  GROUP_DESC: 7,
  METER_DESC: 10,
  METER_FEATURES: 11,
  FLOW_MONITOR: 16,
} as const;

/** `OFPMPF_REPLY_MORE`: another part of the same reply follows. */
export const multipartMore = 1;

/** Experimenter ids. */
export const Vendor = { NICIRA: 0x00002320, ONF: 0x4f4e4600, NETRONOME: 0x0000154d } as const;

/** Reserved port numbers, and "any" where a request filters (OpenFlow 1.5.1, 7.2.1). */
export const Port = {
  MAX: 0xffffff00,
  IN_PORT: 0xfffffff8,
  TABLE: 0xfffffff9,
  NORMAL: 0xfffffffa,
  FLOOD: 0xfffffffb,
  ALL: 0xfffffffc,
  CONTROLLER: 0xfffffffd,
  LOCAL: 0xfffffffe,
  ANY: 0xffffffff,
} as const;

/** "All groups", "any group" and "all meters". */
export const Group = { ALL: 0xfffffffc, ANY: 0xffffffff } as const;
export const Meter = { ALL: 0xffffffff } as const;
/** "All tables" of a request. */
export const allTables = 0xff;
/** No packet lies in the switch's buffers; Open vSwitch has none. */
export const noBuffer = 0xffffffff;
/** The whole packet goes to the controller (`OFPCML_NO_BUFFER`). */
export const wholePacket = 0xffff;
/** What a flow has where nobody says otherwise; ovs-ofctl does not print it. */
export const defaultPriority = 0x8000;

export const headerBytes = 8;

export const FlowCommand = { add: 0, modify: 1, modifyStrict: 2, delete: 3, deleteStrict: 4 } as const;
export type FlowCommand = keyof typeof FlowCommand;

/** OFPFF_*, in ovs-ofctl's words and order. */
export const FlowFlag = {
  send_flow_rem: 1,
  check_overlap: 2,
  reset_counts: 4,
  no_packet_counts: 8,
  no_byte_counts: 16,
} as const;
export type FlowFlag = keyof typeof FlowFlag;

const portNames = new Map<number, string>(
  (["IN_PORT", "TABLE", "NORMAL", "FLOOD", "ALL", "CONTROLLER", "LOCAL"] as const).map((name) => [Port[name], name]),
);

/** `7`, `LOCAL`, `IN_PORT`; `ANY` is what ovs-ofctl calls it too. */
export function formatPort(port: number): string {
  return port === Port.ANY ? "ANY" : (portNames.get(port) ?? String(port));
}

/** Nicira's actions name ports in 16 bits, the reserved ones from 0xfff8 on. */
export const port16 = (port: number): number => (port >= Port.MAX ? port & 0xffff : port);
export const port32 = (port: number): number => (port >= 0xff00 ? 0xffff0000 + port : port);
