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
 * Open vSwitch in user space reads a copy of the packets of an interface, and the node's kernel still gets them too. It
 * would answer pods' ARP, route around all flows, and receive packets twice. So the kernel drops everything from pods'
 * ports, which belong to an interface group from their creation on, so that no rule changes for a new pod. From other
 * interfaces of a switch, such as the node's own, it accepts only packets for the interface's own addresses, so that
 * the interface works again if it is taken off the switch while no agent runs.
 *
 * These rules lie in tables of their own, so that they stay when an agent of any release replaces its packet rules.
 */
export class KernelIsolation {
  readonly #filters: NetlinkSocket;
  readonly #socket: NetlinkSocket;
  readonly #rules: ReturnType<typeof rulesets>;
  /** Interfaces that the rules name, whichever agent has set them. */
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

  /** Installs all rules. @param ports host ends in service @throws {NetlinkError} */
  install(ports: readonly Link[]): void {
    this.#read ??= namesIn(this.#filters, this.#rules.read);
    for (const name of this.#read) answerForOwnAlone(this.#socket, name, true);
    for (const { ruleset, wanted } of this.#wanted()) installRuleset(this.#filters, ruleset, wanted);
    for (const port of ports) {
      const refusal = this.#socket.batch(isolatePort(port)).find((one) => one !== undefined);
      if (refusal !== undefined) throw refusal;
    }
  }

  /** Sets the interfaces that belong to the switch, beside pods' ports. @throws {NetlinkError} */
  leaveToSwitch(names: readonly string[]): void {
    const before = this.#read ?? namesIn(this.#filters, this.#rules.read);
    const others = before.filter((name) => !names.includes(name));
    const added = names.filter((name) => !before.includes(name));
    if (others.length + added.length === 0) return;
    // The kernel must answer ARP for an address only on the interface that has it.
    for (const name of added) answerForOwnAlone(this.#socket, name, true);
    for (const name of others) answerForOwnAlone(this.#socket, name, false);
    this.#read = names;
    for (const { ruleset, wanted } of this.#wanted()) installRuleset(this.#filters, ruleset, wanted);
  }

  /** What is not as it should be, in sentences; `install` puts it right. @throws {NetlinkError} */
  missing(ports: readonly Link[]): readonly string[] {
    const exposed = ports.filter(({ group }) => group !== linkGroup.onSwitch);
    return [
      ...this.#wanted().flatMap(({ ruleset, wanted }) => missingFromRuleset(this.#filters, ruleset, wanted)),
      ...(this.#read ?? [])
        .filter((name) => readSysctl(`/proc/sys/net/ipv4/conf/${name}/arp_ignore`) === "0")
        .map((name) => `the node's kernel answers ARP for all of its addresses on "${name}", beside the switch`),
      ...exposed.map(({ name }) => `the node's kernel hears "${name}" beside the switch`),
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

/**
 * Makes the kernel ignore packets from a host end also while somebody has deleted the rules, because a wrong ARP answer
 * would have lasting effects.
 */
const isolatePort = ({ name, index }: Pick<Link, "name" | "index">): readonly Message[] => [
  setIpv4Options(name, index, { hearsNobody: true }),
  setLink(name, index, { group: linkGroup.onSwitch }),
];

/** Removes all of it; does nothing if there was none. @throws {NetlinkError} */
export function removeKernelIsolation(filters: NetlinkSocket, socket: NetlinkSocket, gateway: string): void {
  const { tables, read } = rulesets(gateway);
  for (const name of namesIn(filters, read)) answerForOwnAlone(socket, name, false);
  for (const table of tables) {
    const isThere = unlessMissing(false, () => {
      filters.get(askForChain(table.name, chain, table.family), readRuleCount);
      return true;
    });
    if (isThere) filters.transact([deleteTable(table)]);
    // The second table exists only with the first, and not every kernel has its family.
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
/** Before the kernel reassembles fragments, because it would mix those of both copies. */
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
  // Multicast passes, because neighbour discovery needs it and the kernel answers only for its own addresses.
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
