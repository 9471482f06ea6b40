import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message } from "./message-writer.ts";

/** linux/netfilter/nfnetlink.h and nf_tables.h: requests of nftables, whose numbers are in network byte order. */
const subsystem = 10 << 8;
const getChain = subsystem | 4;
const inet = 1;
const Chain = { TABLE: 1, NAME: 3, USE: 6 } as const;

/**
 * Asks for a chain in a table of family `inet`, on a socket for packet filters. ENOENT: there is no such chain, or no
 * such table.
 */
export function askForChain(table: string, chain: string): Message {
  return {
    action: `look at the chain "${chain}" of the table "${table}"`,
    type: getChain,
    // struct nfgenmsg
    body: (writer) => writer.u8(inet).u8(0).u16(0).attrText(Chain.TABLE, table).attrText(Chain.NAME, chain),
  };
}

/** How many rules the chain has. @throws {MalformedMessage} */
export function readRuleCount(message: RawMessage): number {
  const bytes = new Attributes(fixedHeader(message.body, 4).rest).bytes(Chain.USE) ?? new Uint8Array(0);
  return bytes.reduce((value, byte) => value * 256 + byte, 0);
}
