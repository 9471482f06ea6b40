import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import type { Ip } from "../../../../shared/net/ip.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import {
  countIn,
  drop,
  type Element,
  elementOf,
  ipBytes,
  jumpTo,
  type Rule,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { linkLocalOf } from "../../addresses.ts";
import type { NodePolicies, RefusedRule } from "../../policies.ts";
import { rulesOf } from "../frame-fields.ts";
import {
  bridgeChains,
  type ClosedPorts,
  closedPorts,
  judgingChains,
  noRedirects,
  type PodMaps,
  type PolicedBridge,
  podMaps,
} from "./node-chains.ts";
import { type PacketProgram, PartDraft, placeOf } from "./packet-program.ts";
import { type PodRules, type RuleChains, shortName, type VerdictReports } from "./rule-chains.ts";

/** A pod as packets know it. */
export interface PolicedPod {
  readonly owner: Owner;
  readonly mac: string;
  readonly ips: readonly Ip[];
  /** Index of its port. */
  readonly port: number;
  /** Name of the bridge that the port belongs to. */
  readonly bridge: string;
}

/** The addresses by which a pod reaches others: the node also by its link-local one. */
export const sourcesOf = ({ ips, mac }: Pick<PolicedPod, "ips" | "mac">): readonly Ip[] => [...ips, linkLocalOf(mac)];

/** The counter of what a pod's isolation refuses. */
export const deniedCounter = (owner: Owner, direction: Direction): string =>
  shortName(direction === "egress" ? "denied-from" : "denied-to", ownerKey(owner));

/**
 * What is to stand in nftables: for each rule a chain that accepts what it allows, for each isolated pod and direction a
 * chain that goes through the pod's rules and drops the rest, and maps from pods' addresses to their chains.
 */
export function policyProgram(
  table: Table,
  wanted: NodePolicies,
  pods: Iterable<PolicedPod>,
  bridges: readonly PolicedBridge[],
  ruleChains: RuleChains,
  reports?: VerdictReports,
): { readonly program: PacketProgram; readonly refused: readonly RefusedRule[] } {
  const draft = new PartDraft();
  const maps = podMaps(table);
  for (const set of [...Object.values(maps)].flatMap((map) => [map[4], map[6]]))
    draft.addSet({ set, elements: new Map() });
  for (const chain of [...judgingChains(table, maps), noRedirects(table, bridges)]) draft.addChain(chain);
  const closedAt = new Map(bridges.map(({ name }) => [name, closedPorts(name)]));
  for (const bridge of bridges) {
    const closed = closedAt.get(bridge.name);
    if (closed === undefined) continue;
    for (const set of Object.values(closed)) draft.addSet({ set, elements: new Map() });
    for (const chain of bridgeChains(bridge, closed)) draft.addChain(chain);
  }
  const rules = ruleChains.forPods(wanted);
  for (const pod of pods) {
    const key = ownerKey(pod.owner);
    for (const direction of wanted.isolated.get(key)?.directions ?? [])
      isolate(
        draft,
        table,
        maps,
        closedAt.get(pod.bridge),
        pod,
        direction,
        rules[direction].get(key) ?? noRules,
        reports,
      );
  }
  return { program: { table, parts: [rules.part, draft] }, refused: rules.refused };
}

const noRules: PodRules = { chains: [], text: "" };

function isolate(
  draft: PartDraft,
  table: Table,
  maps: PodMaps,
  closedAt: ClosedPorts | undefined,
  pod: PolicedPod,
  direction: Direction,
  { chains, text }: PodRules,
  reports: VerdictReports | undefined,
): void {
  const { owner, port } = pod;
  const side = direction === "egress" ? "from" : "to";
  const name = shortName(side, ownerKey(owner));
  const denied = deniedCounter(owner, direction);
  draft.counters.add(denied);
  const make = rulesOf(table);
  const reported = reports?.denied(denied) ?? [];
  draft.addChain({
    table,
    name,
    text,
    rules: (): readonly Rule[] => [
      ...chains.map(({ chain }) => make(name, "a rule", [jumpTo(chain.name)])),
      ...(reported.length === 0 ? [] : [make(name, "reported", reported)]),
      make(name, `${owner.sandboxId.slice(0, 64)} is isolated`, [countIn(denied), drop]),
    ],
  });
  const ips = sourcesOf(pod);
  for (const ip of ips) {
    const { family } = ip;
    put(draft, { ...elementOf(maps[side][family], ipBytes(ip)), chain: name });
    for (const other of ips)
      if (other.family === family) put(draft, elementOf(maps.itself[family], ipBytes(ip), ipBytes(other)));
  }
  const index = new Uint8Array(new Uint32Array([port]).buffer);
  if (closedAt !== undefined) put(draft, elementOf(closedAt[side], index));
}

/** Of two pods with one address the later one has it. */
function put({ sets }: PartDraft, element: Element): void {
  const elements = sets.get(placeOf(element.set))?.elements as Map<string, Element> | undefined;
  elements?.set(element.key.toHex(), element);
}
