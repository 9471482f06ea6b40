import {
  among,
  askForChain,
  compare,
  counter,
  deleteTable,
  destinationKind,
  drop,
  type Element,
  type Expression,
  elementOf,
  inputInterfaceGroup,
  inputInterfaceName,
  type Link,
  type Message,
  masked,
  type NetlinkSocket,
  networkFamily,
  type PacketSet,
  payload,
  type Rule,
  readRuleCount,
  setIpv4Options,
  setLink,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { findLink, linkGroup } from "../../linux/host-links.ts";
import { readSysctl } from "../../linux/node-sysctls.ts";
import { installRuleset, missingFromRuleset, type Ruleset } from "../../linux/rule-keeper.ts";
import { standingElements, unlessMissing } from "../../linux/set-elements.ts";

/**
 * Open vSwitch in user space reads a copy of what comes in by an interface; the node's kernel has the other one. It would
 * answer pods' ARP, route past all flows, and hear twice what the switch brings it as well. So it makes nothing of what
 * comes in by pods' ports, which are in a group of interfaces from their creation on: no rule is to be changed for a new
 * one. By other interfaces of a switch, such as the node's own, it hears what is for an address of the interface itself,
 * so that one which is taken off the switch while no agent runs is of use again.
 *
 * These rules lie in tables of their own: what packet rules an agent replaces, of whichever release, they stay.
 */
export class KernelIsolation {
  readonly #filters: NetlinkSocket;
  readonly #socket: NetlinkSocket;
  readonly #rules: ReturnType<typeof rulesets>;
  /** What was said last, by whichever agent. */
  #read: readonly string[] | undefined;

  /**
   * @param filters socket for packet filters
   * @param socket in the same namespace
   * @param gateway names the tables
   */
  constructor(filters: NetlinkSocket, socket: NetlinkSocket, gateway: string) {
    this.#filters = filters;
    this.#socket = socket;
    this.#rules = rulesets(gateway);
  }

  /** Puts all of it there. @param ports host's ends that are in service @throws {NetlinkError} */
  install(ports: readonly Link[]): void {
    this.#read ??= namesIn(this.#filters, this.#rules.read);
    for (const name of this.#read) answerForOwnAlone(this.#socket, name, true);
    for (const { ruleset, wanted } of this.#wanted()) installRuleset(this.#filters, ruleset, wanted);
    for (const port of ports) {
      const refusal = this.#socket.batch(besideSwitch(port)).find((one) => one !== undefined);
      if (refusal !== undefined) throw refusal;
    }
  }

  /** These interfaces are the switch's, beside pods' ports, and no others. @throws {NetlinkError} */
  leaveToSwitch(names: readonly string[]): void {
    const before = this.#read ?? namesIn(this.#filters, this.#rules.read);
    const others = before.filter((name) => !names.includes(name));
    const added = names.filter((name) => !before.includes(name));
    if (others.length + added.length === 0) return;
    // The kernel answers for the node's addresses where they are, with the MAC of that interface.
    for (const name of added) answerForOwnAlone(this.#socket, name, true);
    for (const name of others) answerForOwnAlone(this.#socket, name, false);
    this.#read = names;
    for (const { ruleset, wanted } of this.#wanted()) installRuleset(this.#filters, ruleset, wanted);
  }

  /** What is not as it should be, in sentences; `install` puts it right. @throws {NetlinkError} */
  missing(ports: readonly Link[]): readonly string[] {
    const heard = ports.filter(({ group }) => group !== linkGroup.onSwitch);
    return [
      ...this.#wanted().flatMap(({ ruleset, wanted }) => missingFromRuleset(this.#filters, ruleset, wanted)),
      ...(this.#read ?? [])
        .filter((name) => readSysctl(`/proc/sys/net/ipv4/conf/${name}/arp_ignore`) === "0")
        .map((name) => `the node's kernel answers ARP for all of its addresses on "${name}", beside the switch`),
      ...heard.map(({ name }) => `the node's kernel hears "${name}" beside the switch`),
    ];
  }

  #wanted(): readonly { readonly ruleset: Ruleset; readonly wanted: readonly Element[] }[] {
    const { ip, arp, read } = this.#rules;
    return [
      { ruleset: ip, wanted: (this.#read ?? []).map((name) => elementOf(read, nameBytes(name))) },
      { ruleset: arp, wanted: [] },
    ];
  }
}

/** Has the kernel make nothing of what comes in by a host's end, also while somebody has taken the rules away: a wrong answer to ARP would outlive that. */
const besideSwitch = ({ name, index }: Pick<Link, "name" | "index">): readonly Message[] => [
  setIpv4Options(name, index, { hearsNobody: true }),
  setLink(name, index, { group: linkGroup.onSwitch }),
];

/** As if there never had been such a switch; nothing where there was none. @throws {NetlinkError} */
export function removeKernelIsolation(filters: NetlinkSocket, socket: NetlinkSocket, gateway: string): void {
  const { tables, read } = rulesets(gateway);
  for (const name of namesIn(filters, read)) answerForOwnAlone(socket, name, false);
  for (const table of tables) {
    const isThere = unlessMissing(false, () => {
      filters.get(askForChain(table.name, chain, table.family), readRuleCount);
      return true;
    });
    if (isThere) filters.transact([deleteTable(table)]);
    // The second one comes with the first, and not every kernel knows its family.
    else return;
  }
}

const namesIn = (filters: NetlinkSocket, set: PacketSet): readonly string[] =>
  standingElements(filters, [set]).map(({ key }) => new TextDecoder().decode(key).replace(/\0.*$/, ""));

/** An interface may have gone meanwhile. */
function answerForOwnAlone(socket: NetlinkSocket, name: string, isOn: boolean): void {
  const link = findLink(socket, { name });
  if (link !== undefined) socket.run(setIpv4Options(name, link.index, { answersForOwnAlone: isOn }));
}

const chain = "heard";
/** Before the kernel puts fragments together: those of both copies would be taken for one packet's. */
const beforeFragments = -450;
/** RTN_LOCAL */
const local = 2;
const allBits = (bytes: number): Uint8Array => new Uint8Array(bytes).fill(0xff);

function rulesets(gateway: string): {
  readonly tables: readonly Table[];
  readonly ip: Ruleset;
  readonly arp: Ruleset;
  readonly read: PacketSet;
} {
  const name = `pipette-beside-${gateway}`;
  const [ipTable, arpTable]: [Table, Table] = [
    { family: "inet", name },
    { family: "arp", name },
  ];
  const read: PacketSet = { table: ipTable, name: "read", key: ["ifname"] };
  const dropped = (table: Table, comment: string, expressions: readonly Expression[]): Rule => ({
    table,
    chain,
    expressions: [...expressions, counter, drop],
    comment,
  });
  const pods = (table: Table): readonly Rule[] =>
    [linkGroup.beingMade, linkGroup.onSwitch].map((group) =>
      dropped(table, "pods' ports", compare(inputInterfaceGroup, "eq", nativeBytes(group))),
    );
  const family = (number: number): readonly Expression[] => compare(networkFamily, "eq", Uint8Array.of(number));
  const others: readonly Expression[] = [
    ...among(read.name, inputInterfaceName),
    ...compare(destinationKind, "neq", nativeBytes(local)),
  ];
  // Neighbours find each other by groups, and whoever has not the address that is asked for does not answer.
  const notToGroup = compare(masked(payload("network", 24, 1), allBits(1)), "neq", allBits(1));
  const hooks = (priority: number): Ruleset["hooks"] => new Map([[chain, { number: 0, priority }]]);
  return {
    tables: [ipTable, arpTable],
    read,
    ip: {
      table: ipTable,
      sets: [read],
      hooks: hooks(beforeFragments),
      rules: [
        ...pods(ipTable),
        dropped(ipTable, "the switch's alone", [...family(2), ...others]),
        dropped(ipTable, "the switch's alone", [...family(10), ...notToGroup, ...others]),
      ],
    },
    arp: { table: arpTable, sets: [], hooks: hooks(0), rules: pods(arpTable) },
  };
}

function nativeBytes(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

function nameBytes(name: string): Uint8Array {
  const bytes = new Uint8Array(inputInterfaceName.bytes);
  new TextEncoder().encodeInto(name, bytes);
  return bytes;
}
