import { Errno } from "../../../agent/protocols/netlink/errno.ts";
import { type Attributes, type RawMessage, readAttributes } from "../../../agent/protocols/netlink/message-reader.ts";
import type { Message } from "../../../agent/protocols/netlink/message-writer.ts";
import { NetlinkError } from "../../../agent/protocols/netlink/netlink-error.ts";
import { Nfta, NftMessage, TableFamily } from "../../../agent/protocols/netlink/nftables/numbers.ts";
import { framed, opened, Refusal, SocketInMemory } from "./messages.ts";

export interface ChainInMemory {
  readonly hook?: { readonly number: number; readonly priority: number };
  rules: RuleInMemory[];
}

export interface RuleInMemory {
  /** Attributes of each expression: its name and its data. */
  readonly expressions: readonly Attributes[];
  readonly comment: string;
}

export interface SetInMemory {
  readonly keyBytes: number;
  /** By their bytes in hexadecimal. */
  elements: Map<string, Uint8Array>;
}

export interface TableInMemory {
  readonly chains: Map<string, ChainInMemory>;
  readonly sets: Map<string, SetInMemory>;
}

const net32 = (bytes: Uint8Array | undefined): number =>
  bytes === undefined ? 0 : new DataView(bytes.buffer, bytes.byteOffset).getInt32(0);

/** For unit tests only: nftables whose tables are maps, for rules that are asked about packets and for what a real kernel refuses at its own time. */
export class PacketFilterInMemory extends SocketInMemory {
  /** By family and name, as in "bridge pipette-br0". */
  tables = new Map<string, TableInMemory>();

  /** All of it, or nothing. */
  transact(messages: readonly Message[]): void {
    const before = copied(this.tables);
    try {
      for (const message of messages) this.run(message);
    } catch (caught) {
      if (caught instanceof NetlinkError) this.tables = before;
      throw caught;
    }
  }

  /** The elements of a set, in hexadecimal and in order. */
  elements(table: string, set: string): readonly string[] {
    return [...(this.tables.get(table)?.sets.get(set)?.elements.keys() ?? [])].toSorted();
  }

  protected override apply(request: RawMessage): void {
    const { view, of } = opened(request, 4);
    const family = familyName(view.getUint8(0));
    const key = `${family} ${of.text(Nfta.TABLE_NAME)}`;
    if (request.type === NftMessage.NEWTABLE) {
      if (!this.tables.has(key)) this.tables.set(key, { chains: new Map(), sets: new Map() });
      return;
    }
    const table = known(this.tables, key);
    switch (request.type) {
      case NftMessage.DELTABLE:
        this.tables.delete(key);
        return;
      case NftMessage.NEWCHAIN:
        newChain(table, of);
        return;
      case NftMessage.NEWRULE:
        newRule(table, of);
        return;
      case NftMessage.DELRULE:
        known(table.chains, of.text(Nfta.RULE_CHAIN)).rules = [];
        return;
      case NftMessage.NEWSET: {
        const name = of.text(Nfta.SET_NAME) ?? "";
        const keyBytes = net32(of.bytes(Nfta.SET_KEY_LEN));
        if (!table.sets.has(name)) table.sets.set(name, { keyBytes, elements: new Map() });
        return;
      }
      case NftMessage.NEWSETELEM:
        for (const element of elementsOf(of)) setOf(table, of).elements.set(element.toHex(), element);
        return;
      case NftMessage.DELSETELEM:
        for (const element of elementsOf(of))
          if (!setOf(table, of).elements.delete(element.toHex())) throw new Refusal(Errno.ENOENT);
        return;
      default:
        throw new Error(`Broken invariant: no such request as ${request.type}`);
    }
  }

  protected override answer(request: RawMessage, isDump: boolean): readonly RawMessage[] {
    const { view, of } = opened(request, 4);
    const table = known(this.tables, `${familyName(view.getUint8(0))} ${of.text(Nfta.TABLE_NAME)}`);
    if (request.type === NftMessage.GETCHAIN) {
      const name = of.text(Nfta.CHAIN_NAME) ?? "";
      const uses = known(table.chains, name).rules.length + leadingTo(table, name);
      return [framed(NftMessage.NEWCHAIN, (writer) => writer.u32(0).attrU32Net(Nfta.CHAIN_USE, uses))];
    }
    const { elements } = setOf(table, of);
    const asked = isDump ? [...elements.values()] : elementsOf(of);
    if (asked.some((element) => !elements.has(element.toHex()))) throw new Refusal(Errno.ENOENT);
    return [
      framed(NftMessage.NEWSETELEM, (writer) => {
        writer.u32(0).begin(Nfta.SET_ELEM_LIST_ELEMENTS);
        for (const element of asked)
          writer.begin(Nfta.LIST_ELEM).attrNested(Nfta.SET_ELEM_KEY, Nfta.DATA_VALUE, element).end();
        writer.end();
      }),
    ];
  }
}

function known<T>(map: ReadonlyMap<string, T>, key: string | undefined): T {
  const found = map.get(key ?? "");
  if (found === undefined) throw new Refusal(Errno.ENOENT);
  return found;
}

const familyName = (number: number): string =>
  Object.entries(TableFamily).find(([, value]) => value === number)?.[0] ?? "unknown";

const setOf = (table: TableInMemory, of: Attributes): SetInMemory => known(table.sets, of.text(Nfta.SET_ELEM_LIST_SET));

function elementsOf(of: Attributes): readonly Uint8Array[] {
  const list = of.bytes(Nfta.SET_ELEM_LIST_ELEMENTS) ?? new Uint8Array(0);
  return [...readAttributes(list)].map(([, bytes]) => {
    const element = opened({ type: 0, flags: 0, sequence: 0, port: 0, body: bytes }, 0).of;
    return (element.nested(Nfta.SET_ELEM_KEY)?.bytes(Nfta.DATA_VALUE) ?? new Uint8Array(0)).slice();
  });
}

function newChain(table: TableInMemory, of: Attributes): void {
  const name = of.text(Nfta.CHAIN_NAME) ?? "";
  if (table.chains.has(name)) return;
  const hook = of.nested(Nfta.CHAIN_HOOK);
  const place = {
    number: net32(hook?.bytes(Nfta.HOOK_HOOKNUM)),
    priority: net32(hook?.bytes(Nfta.HOOK_PRIORITY)),
  };
  table.chains.set(name, { rules: [], ...(hook === undefined ? {} : { hook: place }) });
}

function newRule(table: TableInMemory, of: Attributes): void {
  const list = of.bytes(Nfta.RULE_EXPRESSIONS) ?? new Uint8Array(0);
  const expressions = [...readAttributes(list)].map(
    ([, bytes]) => opened({ type: 0, flags: 0, sequence: 0, port: 0, body: bytes }, 0).of,
  );
  for (const one of expressions) {
    const target = jumpOf(one);
    if (target !== undefined) known(table.chains, target);
  }
  const comment = new TextDecoder().decode(of.bytes(Nfta.RULE_USERDATA)?.slice(2, -1));
  known(table.chains, of.text(Nfta.RULE_CHAIN)).rules.push({ expressions, comment });
}

/** The chain that an expression goes on in. */
function jumpOf(expression: Attributes): string | undefined {
  if (expression.text(Nfta.EXPR_NAME) !== "immediate") return undefined;
  const data = expression.nested(Nfta.EXPR_DATA)?.nested(Nfta.IMMEDIATE_DATA);
  return data?.nested(Nfta.DATA_VERDICT)?.text(Nfta.VERDICT_CHAIN);
}

/** Rules that lead to a chain, which the kernel counts with its own. */
const leadingTo = (table: TableInMemory, chain: string): number =>
  [...table.chains.values()].flatMap(({ rules }) =>
    rules.filter(({ expressions }) => expressions.some((one) => jumpOf(one) === chain)),
  ).length;

const copied = (tables: ReadonlyMap<string, TableInMemory>): Map<string, TableInMemory> =>
  new Map(
    [...tables].map(([key, { chains, sets }]) => [
      key,
      {
        chains: new Map([...chains].map(([name, chain]) => [name, { ...chain, rules: [...chain.rules] }])),
        sets: new Map([...sets].map(([name, set]) => [name, { ...set, elements: new Map(set.elements) }])),
      },
    ]),
  );
