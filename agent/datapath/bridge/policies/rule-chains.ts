import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import { type Family, ipOf } from "../../../../shared/net/ip.ts";
import type { BlockPeer, Direction } from "../../../../shared/policy/mod.ts";
import {
  accept,
  among,
  connectionFields,
  countIn,
  type Element,
  type Expression,
  elementOf,
  ipBytes,
  opensConnection,
  type PacketSet,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { digest } from "../../owner-names.ts";
import type { AddressSet, NodePolicies, PodRule, RefusedRule, RulePorts } from "../../policies.ts";
import { addressesIn, portsIn } from "../../policy-ranges.ts";
import { rulesOf } from "../frame-fields.ts";
import { type FilledChain, type FilledSet, PartDraft, type ProgramPart } from "./packet-program.ts";

/** What stands for one rule. */
export interface RuleChain {
  readonly chain: FilledChain;
  readonly sets: readonly FilledSet[];
  /** Packets that it has let through, and connections. */
  readonly counters: { readonly passed: string; readonly opened: string };
}

/** What stands for the rules of one pod in one direction. */
export interface PodRules {
  readonly chains: readonly RuleChain[];
  /** Their names. */
  readonly text: string;
}

interface RulesOfPods extends Readonly<Record<Direction, ReadonlyMap<string, PodRules>>> {
  readonly part: ProgramPart;
  readonly refused: readonly RefusedRule[];
}

/** Ranges of addresses and ports in one rule: some MB, and a tenth of a second in the kernel. */
const maxRanges = 65_536;
/** nft shows no more of a comment than 128 bytes. */
const maxCommentChars = 100;

const families = { 4: "ipv4", 6: "ipv6" } as const;

/** Names of nftables hold at most 128 bytes, and not every character. */
export const shortName = (kind: string, ...parts: readonly string[]): string =>
  `${kind}-${digest(kind, ...parts)
    .subarray(0, 10)
    .toHex()}`;

/** The counters of a rule, which stay while its text changes. */
export const countersOf = (id: string): RuleChain["counters"] => ({
  passed: shortName("passed", id),
  opened: shortName("opened", id),
});

/** The expressions that report packets, by the counters that count them too; none for those that are not to be told. */
export interface VerdictReports {
  opened(counter: string): readonly Expression[];
  denied(counter: string): readonly Expression[];
}

/** Makes chains and sets of rules, and remembers them by the rules' identity, since most rules stay as they are. */
export class RuleChains {
  readonly #table: Table;
  readonly #families: readonly Family[];
  readonly #reports: VerdictReports | undefined;
  readonly #chains = new WeakMap<PodRule, RuleChain | RefusedRule>();
  readonly #ofPods = new WeakMap<NodePolicies, RulesOfPods>();
  readonly #members = new WeakMap<AddressSet, readonly FilledSet[]>();
  readonly #blocks = new WeakMap<readonly BlockPeer[], readonly FilledSet[]>();
  readonly #ports = new WeakMap<readonly RulePorts[], FilledSet>();

  /** @param families of the pods' addresses */
  constructor(table: Table, families: readonly Family[], reports?: VerdictReports) {
    this.#table = table;
    this.#reports = reports;
    this.#families = families;
  }

  /** By owners' keys. */
  forPods(wanted: NodePolicies): RulesOfPods {
    // Pods come and go more often than policies change.
    return remembered(this.#ofPods, wanted, () => this.#forPods(wanted));
  }

  #forPods({ rules, isolated }: NodePolicies): RulesOfPods {
    const found = { ingress: new Map<string, RuleChain[]>(), egress: new Map<string, RuleChain[]>() };
    const refused: RefusedRule[] = [];
    const part = new PartDraft();
    for (const rule of rules.values()) {
      const made = remembered(this.#chains, rule, () => this.#make(rule));
      if ("reason" in made) {
        refused.push(made);
        continue;
      }
      part.addChain(made.chain);
      for (const set of made.sets) part.addSet(set);
      part.counters.add(made.counters.passed).add(made.counters.opened);
      for (const target of rule.targets) {
        const key = ownerKey(target);
        if (!isolated.has(key)) continue;
        const before = found[rule.direction].get(key);
        if (before === undefined) found[rule.direction].set(key, [made]);
        else before.push(made);
      }
    }
    const told = (of: ReadonlyMap<string, RuleChain[]>): ReadonlyMap<string, PodRules> =>
      new Map([...of].map(([key, chains]) => [key, { chains, text: chains.map(({ chain }) => chain.name).join() }]));
    return { ingress: told(found.ingress), egress: told(found.egress), part, refused };
  }

  #make(rule: PodRule): RuleChain | RefusedRule {
    const { id, peers, ports, direction, policy } = rule;
    const counters = countersOf(id);
    const among = peers && [...peers.sets.flatMap((set) => this.#membersOf(set)), ...this.#blocksOf(peers.blocks)];
    const portSet = ports && this.#portsOf(ports);
    const ranges = [...(among ?? []), ...(portSet === undefined ? [] : [portSet])].filter(({ set }) => set.hasRanges);
    const count = ranges.reduce((sum, { elements }) => sum + elements.size, 0);
    if (count > maxRanges)
      return { id, reason: `its blocks and ports are ${count} ranges, and the node's packet rules hold ${maxRanges}` };
    const ofPorts = portSet === undefined ? [] : inPorts(portSet.set);
    const matches = (among ?? [undefined]).map((peer) => [
      ...ofPorts,
      ...(peer === undefined ? [] : ofPeers(direction, peer.set)),
    ]);
    const reported = this.#reports?.opened(counters.opened) ?? [];
    const text = [
      among?.map(({ set }) => set.name).join() ?? "anybody",
      portSet?.set.name ?? "any port",
      ...(reported.length > 0 ? ["reported"] : []),
    ].join(" ");
    const name = shortName("rule", id, direction, text);
    const make = rulesOf(this.#table);
    const comment = `${policy.namespace}/${policy.name}`.slice(0, maxCommentChars);
    return {
      sets: [...(among ?? []), ...(portSet === undefined ? [] : [portSet])],
      counters,
      chain: {
        table: this.#table,
        name,
        text,
        isOfContent: true,
        rules: () =>
          matches.flatMap((match) => [
            make(name, comment, [...opensConnection, ...match, countIn(counters.opened), ...reported]),
            make(name, comment, [...match, countIn(counters.passed), accept]),
          ]),
      },
    };
  }

  #membersOf(group: AddressSet): readonly FilledSet[] {
    return remembered(this.#members, group, () =>
      this.#families.map((family) => {
        const set: PacketSet = {
          table: this.#table,
          name: shortName(`peers${family}`, group.name),
          key: [families[family]],
        };
        return filled(
          set,
          group.ips.filter((ip) => ip.family === family).map((ip) => elementOf(set, ipBytes(ip))),
        );
      }),
    );
  }

  /** Named by their content, so that rules share them and none is ever changed. */
  #blocksOf(blocks: readonly BlockPeer[]): readonly FilledSet[] {
    return remembered(this.#blocks, blocks, () =>
      this.#families.flatMap((family) => {
        const ranges = addressesIn(blocks, family);
        if (ranges.length === 0) return [];
        const text = ranges.map(({ first, last }) => `${first}-${last}`);
        const name = shortName(`blocks${family}`, ...text);
        const set: PacketSet = { table: this.#table, name, key: [families[family]], hasRanges: true };
        const bytes = (value: bigint): Uint8Array => ipBytes(ipOf(family, value));
        return [
          filled(
            set,
            ranges.map(({ first, last }) => ({ ...elementOf(set, bytes(first)), last: bytes(last) })),
          ),
        ];
      }),
    );
  }

  #portsOf(ports: readonly RulePorts[]): FilledSet {
    return remembered(this.#ports, ports, () => {
      const ranges = portsIn(ports);
      const name = shortName("ports", ...ranges.map(({ protocol, first, last }) => `${protocol} ${first}-${last}`));
      const set: PacketSet = { table: this.#table, name, key: ["protocol", "port"], hasRanges: true };
      const key = (protocol: number, port: bigint): Element =>
        elementOf(set, Uint8Array.of(protocol), Uint8Array.of(Number(port >> 8n), Number(port & 0xffn)));
      return filled(
        set,
        ranges.map(({ protocol, first, last }) => ({ ...key(protocol, first), last: key(protocol, last).key })),
      );
    });
  }
}

const { protocol, destinationPort, source4, source6, destination4, destination6 } = connectionFields;
const peerFields = {
  ingress: { ipv4: source4, ipv6: source6 },
  egress: { ipv4: destination4, ipv6: destination6 },
} as const;

const inPorts = (set: PacketSet): readonly Expression[] => among(set.name, protocol, destinationPort);

const ofPeers = (direction: Direction, { name, key }: PacketSet): readonly Expression[] =>
  among(name, peerFields[direction][key[0] === "ipv4" ? "ipv4" : "ipv6"]);

const filled = (set: PacketSet, elements: readonly Element[]): FilledSet => ({
  set,
  elements: new Map(elements.map((element) => [element.key.toHex(), element])),
});

function remembered<K extends object, V>(known: WeakMap<K, V>, key: K, make: () => V): V {
  const before = known.get(key);
  if (before !== undefined) return before;
  const made = make();
  known.set(key, made);
  return made;
}
