import { Flag } from "../constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "../message-reader.ts";
import type { Message, MessageWriter } from "../message-writer.ts";
import { type Expression, goTo } from "./expressions.ts";
import { APPEND, Nfta, NftMessage, SetFlag, TableFamily, VERDICT_DATA } from "./numbers.ts";

/** A table of nftables: where its chains stand is in its family. */
export interface Table {
  readonly family: keyof typeof TableFamily;
  readonly name: string;
}

/** The hook of a base chain. */
export interface Hook {
  /** NF_INET_* or NF_BR_*: 0 before routing, 1 to the node itself, 2 through, 3 of the node's own, 4 on the way out. */
  readonly number: 0 | 1 | 2 | 3 | 4;
  readonly priority: number;
  /** Addresses are translated: only the first packet of a connection comes there. */
  readonly translates?: boolean;
}

export interface Rule {
  readonly table: Table;
  readonly chain: string;
  readonly expressions: readonly Expression[];
  /** The chain in which matching packets continue, without returning. Absent: the last expression decides. */
  readonly leadsTo?: string;
  /** For people: `nft list ruleset` shows it. */
  readonly comment: string;
}

/** Kinds of what a set's elements are made of: how `nft` prints them (its TYPE_* numbers), and their bytes. */
export const keyKinds = {
  ifindex: { type: 20, bytes: 4 },
  mac: { type: 9, bytes: 6 },
  ipv4: { type: 7, bytes: 4 },
  ipv6: { type: 8, bytes: 16 },
  protocol: { type: 12, bytes: 1 },
  port: { type: 13, bytes: 2 },
  ifname: { type: 41, bytes: 16 },
  /** Any number, in the machine's byte order. */
  mark: { type: 19, bytes: 4 },
} as const;

export interface PacketSet {
  readonly table: Table;
  readonly name: string;
  /** Five at most: nft knows no more. */
  readonly key: readonly (keyof typeof keyKinds)[];
  /** Its elements are ranges, none of which meets another. */
  readonly hasRanges?: boolean;
  /** Its elements lead to chains each. */
  readonly leadsToChains?: boolean;
  /** What each element leads to otherwise, made up as the key is. */
  readonly value?: readonly (keyof typeof keyKinds)[];
  /** Packets add elements themselves, up to so many, which end by time. */
  readonly mostFromPackets?: number;
}

/** struct nfgenmsg. */
export function nftHeader(writer: MessageWriter, { family }: Pick<Table, "family">): MessageWriter {
  return writer.u8x4(TableFamily[family]);
}

export const padded = (bytes: number): number => (bytes + 3) & ~3;

export function createTable(table: Table): Message {
  return {
    action: () => `create the table "${table.name}"`,
    type: NftMessage.NEWTABLE,
    flags: Flag.CREATE,
    body: (writer) => nftHeader(writer, table).attrText(Nfta.TABLE_NAME, table.name),
  };
}

/** With all that it has. ENOENT: there is no such table. */
export function deleteTable(table: Table): Message {
  return {
    action: () => `delete the table "${table.name}"`,
    type: NftMessage.DELTABLE,
    body: (writer) => nftHeader(writer, table).attrText(Nfta.TABLE_NAME, table.name),
  };
}

/** Without a hook packets reach it only by rules. An existing chain is not changed. */
export function createChain(table: Table, name: string, hook?: Hook): Message {
  return {
    action: () => `create the chain "${name}" of the table "${table.name}"`,
    type: NftMessage.NEWCHAIN,
    flags: Flag.CREATE,
    body: (writer) => {
      nftHeader(writer, table).attrText(Nfta.CHAIN_TABLE, table.name).attrText(Nfta.CHAIN_NAME, name);
      if (hook === undefined) return;
      writer
        .attrText(Nfta.CHAIN_TYPE, hook.translates ? "nat" : "filter")
        // NF_ACCEPT: packets that match no rule pass.
        .attrU32Net(Nfta.CHAIN_POLICY, 1)
        .begin(Nfta.CHAIN_HOOK)
        .attrU32Net(Nfta.HOOK_HOOKNUM, hook.number)
        .attrU32Net(Nfta.HOOK_PRIORITY, hook.priority)
        .end();
    },
  };
}

/** Behind the rules that the chain has. */
export function appendRule({ table, chain, expressions, leadsTo, comment }: Rule): Message {
  return {
    action: () => `add a rule to the chain "${chain}" of the table "${table.name}"`,
    type: NftMessage.NEWRULE,
    flags: Flag.CREATE | APPEND,
    body: (writer) => {
      nftHeader(writer, table)
        .attrText(Nfta.RULE_TABLE, table.name)
        .attrText(Nfta.RULE_CHAIN, chain)
        .begin(Nfta.RULE_EXPRESSIONS);
      for (const one of expressions) one(writer);
      if (leadsTo !== undefined) goTo(leadsTo)(writer);
      writer.end();
      const text = new TextEncoder().encode(comment);
      // A text is one of several things that nft keeps there: its kind (0), its length, and a zero behind it.
      writer.attrBytes(Nfta.RULE_USERDATA, Uint8Array.from([0, text.length + 1, ...text, 0]));
    },
  };
}

/** Takes all rules of a chain away. */
export function clearChain(table: Table, chain: string): Message {
  return {
    action: () => `clear the chain "${chain}" of the table "${table.name}"`,
    type: NftMessage.DELRULE,
    body: (writer) => nftHeader(writer, table).attrText(Nfta.RULE_TABLE, table.name).attrText(Nfta.RULE_CHAIN, chain),
  };
}

const typeOf = (kinds: PacketSet["key"]): number => kinds.reduce((type, kind) => (type << 6) | keyKinds[kind].type, 0);
const lengthOf = (kinds: PacketSet["key"]): number =>
  kinds.reduce((sum, kind) => sum + padded(keyKinds[kind].bytes), 0);

/** Leaves one that stands as it is. @param id any number that no other set has in the same transaction */
export function createSet(set: PacketSet, id: number): Message {
  const { table, name, key, hasRanges, leadsToChains, value, mostFromPackets } = set;
  const ranges = hasRanges ? SetFlag.INTERVAL | (key.length > 1 ? SetFlag.CONCAT : 0) : 0;
  const isMap = leadsToChains === true || value !== undefined;
  const flags = (isMap ? SetFlag.MAP : 0) | (mostFromPackets === undefined ? 0 : SetFlag.EVAL | SetFlag.TIMEOUT);
  return {
    action: () => `create the set "${name}" of the table "${table.name}"`,
    type: NftMessage.NEWSET,
    flags: Flag.CREATE,
    body: (writer) => {
      nftHeader(writer, table)
        .attrText(Nfta.SET_TABLE, table.name)
        .attrText(Nfta.SET_NAME, name)
        .attrU32Net(Nfta.SET_FLAGS, ranges | flags)
        .attrU32Net(Nfta.SET_KEY_TYPE, typeOf(key))
        .attrU32Net(Nfta.SET_KEY_LEN, lengthOf(key))
        .attrU32Net(Nfta.SET_ID, id);
      if (leadsToChains) writer.attrU32Net(Nfta.SET_DATA_TYPE, VERDICT_DATA);
      if (value !== undefined)
        writer.attrU32Net(Nfta.SET_DATA_TYPE, typeOf(value)).attrU32Net(Nfta.SET_DATA_LEN, lengthOf(value));
      if (mostFromPackets !== undefined)
        writer.begin(Nfta.SET_DESC).attrU32Net(Nfta.SET_DESC_SIZE, mostFromPackets).end();
      if (hasRanges && key.length > 1) {
        writer.begin(Nfta.SET_DESC).begin(Nfta.SET_DESC_CONCAT);
        for (const kind of key) writer.begin(Nfta.LIST_ELEM).attrU32Net(Nfta.SET_FIELD_LEN, keyKinds[kind].bytes).end();
        writer.end().end();
      }
      // Numbers and names of interfaces are in the machine's byte order: kind 0, four bytes, 1.
      if ((key[0] === "ifindex" || key[0] === "ifname") && key.length === 1)
        writer.attrBytes(Nfta.SET_USERDATA, Uint8Array.from([0, 4, 1, 0, 0, 0]));
    },
  };
}

/** Its elements go with it. EBUSY: rules use it. */
export function deleteSet({ table, name }: PacketSet): Message {
  return {
    action: () => `delete the set "${name}" of the table "${table.name}"`,
    type: NftMessage.DELSET,
    body: (writer) => nftHeader(writer, table).attrText(Nfta.SET_TABLE, table.name).attrText(Nfta.SET_NAME, name),
  };
}

/** All sets of a table. ENOENT: there is no such table. */
export const listSets = (table: Table): Message => ({
  action: () => `list the sets of the table "${table.name}"`,
  type: NftMessage.GETSET,
  body: (writer) => nftHeader(writer, table).attrText(Nfta.SET_TABLE, table.name),
});

/** @throws {MalformedMessage} */
export const readSetName = (message: RawMessage): string | undefined =>
  new Attributes(fixedHeader(message.body, 4).rest).text(Nfta.SET_NAME);

/** Its rules go with it. EBUSY: others lead to it. */
export function deleteChain(table: Table, name: string): Message {
  return {
    action: () => `delete the chain "${name}" of the table "${table.name}"`,
    type: NftMessage.DELCHAIN,
    body: (writer) => nftHeader(writer, table).attrText(Nfta.CHAIN_TABLE, table.name).attrText(Nfta.CHAIN_NAME, name),
  };
}

/** All rules of a table. ENOENT: there is no such table. */
export function listRules(table: Table): Message {
  return {
    action: () => `list the rules of the table "${table.name}"`,
    type: NftMessage.GETRULE,
    body: (writer) => nftHeader(writer, table).attrText(Nfta.RULE_TABLE, table.name),
  };
}

/** The chain that a rule is in. @throws {MalformedMessage} */
export const readChainOfRule = (message: RawMessage): string | undefined =>
  new Attributes(fixedHeader(message.body, 4).rest).text(Nfta.RULE_CHAIN);

/** Asks for a chain. ENOENT: there is no such chain, or no such table. */
export function askForChain(table: string, chain: string, family: Table["family"] = "inet"): Message {
  return {
    action: () => `look at the chain "${chain}" of the table "${table}"`,
    type: NftMessage.GETCHAIN,
    body: (writer) => nftHeader(writer, { family }).attrText(Nfta.CHAIN_TABLE, table).attrText(Nfta.CHAIN_NAME, chain),
  };
}

/** How many rules the chain has, and how many lead to it, together. @throws {MalformedMessage} */
export function readRuleCount(message: RawMessage): number {
  const bytes = new Attributes(fixedHeader(message.body, 4).rest).bytes(Nfta.CHAIN_USE) ?? new Uint8Array(0);
  return bytes.reduce((value, byte) => value * 256 + byte, 0);
}
