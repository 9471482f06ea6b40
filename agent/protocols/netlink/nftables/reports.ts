import { Attributes, fixedHeader, type RawMessage } from "../message-reader.ts";
import type { Message } from "../message-writer.ts";

/** linux/netfilter/nfnetlink_log.h: NFNL_SUBSYS_ULOG, and its messages. */
const subsystem = 4 << 8;
const ReportMessage = { PACKET: subsystem | 0, CONFIG: subsystem | 1 } as const;
/** NFULA_* and NFULA_CFG_* */
const Nfula = { PAYLOAD: 9, PREFIX: 10, CFG_CMD: 1, CFG_MODE: 2 } as const;
/** NFULNL_CFG_CMD_BIND, NFULNL_COPY_PACKET */
const [BIND, COPY_PACKET] = [1, 2];

/** Bytes of a packet that are reported: IPv6 with some extension headers, and the ports. */
export const reportedBytes = 128;

/** The socket hears what rules report to a group from then on. EPERM: somebody else does. */
export const followReports = (group: number): Message => ({
  action: () => `hear of packets that rules report to group ${group}`,
  type: ReportMessage.CONFIG,
  body: (writer) =>
    writer
      // struct nfgenmsg, whose last two bytes are in network byte order.
      .u8x4(0, 0, group >> 8, group & 0xff)
      .attrU8(Nfula.CFG_CMD, BIND)
      .attrBytes(Nfula.CFG_MODE, Uint8Array.of(0, 0, 0, reportedBytes, COPY_PACKET, 0)),
});

/** A packet that a rule has reported, from its IP header on, and as what. */
export interface Report {
  readonly prefix: string;
  readonly packet: Uint8Array;
}

/** `undefined` for another message. @throws {MalformedMessage} */
export function readReport({ type, body }: RawMessage): Report | undefined {
  if (type !== ReportMessage.PACKET) return undefined;
  const of = new Attributes(fixedHeader(body, 4).rest);
  const [prefix, packet] = [of.text(Nfula.PREFIX), of.bytes(Nfula.PAYLOAD)];
  return prefix === undefined || packet === undefined ? undefined : { prefix, packet };
}
