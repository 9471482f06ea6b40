import { ownerKey } from "../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { bitsOf, type Cidr, firstOf, formatCidr, type Ip, ipOf, lastOf, sameIp } from "../../../shared/net/ip.ts";
import {
  compare,
  counter,
  type Element,
  Errno,
  type Expression,
  elementOf,
  ipBytes,
  isErrno,
  masked,
  type NetlinkSocket,
  networkFamily,
  notAmong,
  outputInterfaceName,
  type PacketSet,
  payload,
  type Rule,
  rejectAsAbsent,
  type Table,
} from "../../protocols/netlink/mod.ts";
import { packetTable } from "./packet-rules.ts";
import { installRuleset, missingFromRuleset, type Ruleset } from "./rule-keeper.ts";
import { putElements, takeElements } from "./set-elements.ts";

/** A network whose pods the node is the router of. */
export interface Routed {
  /** Interface that leads to its pods. */
  readonly bridge: string;
  readonly subnets: readonly Cidr[];
}

/** Addresses that a pod has now. */
interface AbsentSets {
  readonly pods4: PacketSet;
  readonly pods6: PacketSet;
}

const families = {
  4: { number: 2, set: "pods4", destination: payload("network", 16, 4) },
  6: { number: 10, set: "pods6", destination: payload("network", 24, 16) },
} as const;

/** NF_INET_FORWARD and NF_INET_LOCAL_OUT: what comes from pods and from outside, and what programs of the node send. */
const hooks = new Map([
  ["absent-forward", { number: 2, priority: 0 }],
  ["absent-output", { number: 3, priority: 0 }],
] as const);

/**
 * Rejects packets to addresses of the pods' subnets that no pod has: the node would have to resolve each of them, so a
 * sender that names many could fill its neighbour table. The sender gets the same error as without an answer.
 *
 * The rules lie in the table of the masquerade rules, which an earlier release recreates at its start: it does not
 * maintain the set of pods.
 */
export function absentRuleset(network: Routed): { readonly ruleset: Ruleset; readonly sets: AbsentSets } {
  const table: Table = { family: "inet", name: packetTable(network) };
  const sets: AbsentSets = {
    pods4: { table, name: families[4].set, key: ["ipv4"] },
    pods6: { table, name: families[6].set, key: ["ipv6"] },
  };
  const rules = [...hooks.keys()].flatMap((chain) =>
    network.subnets.map((subnet): Rule => {
      const expressions = [...toNobody(network.bridge, subnet), counter, rejectAsAbsent];
      return { table, chain, expressions, comment: `no pod of ${formatCidr(subnet)}` };
    }),
  );
  return { sets, ruleset: { table, sets: [sets.pods4, sets.pods6], hooks, rules } };
}

function toNobody(bridge: string, subnet: Cidr): readonly Expression[] {
  const { number, set, destination } = families[subnet.ip.family];
  const bits = bitsOf(subnet.ip.family);
  const mask = ipOf(subnet.ip.family, ((1n << BigInt(subnet.prefix)) - 1n) << BigInt(bits - subnet.prefix));
  const name = new Uint8Array(outputInterfaceName.bytes);
  new TextEncoder().encodeInto(bridge, name);
  // The broadcast address belongs to every host.
  const notToAll = subnet.ip.family === 4 ? compare(destination, "neq", ipBytes(lastOf(subnet))) : [];
  return [
    ...compare(networkFamily, "eq", Uint8Array.of(number)),
    ...compare(outputInterfaceName, "eq", name),
    ...compare(masked(destination, ipBytes(mask)), "eq", ipBytes(firstOf(subnet))),
    ...notToAll,
    ...notAmong(set, destination),
  ];
}

export const presentElements = ({ pods4, pods6 }: AbsentSets, ips: readonly Ip[]): readonly Element[] =>
  ips.map((ip) => elementOf(ip.family === 4 ? pods4 : pods6, ipBytes(ip)));

interface PresentPod {
  readonly owner: Owner;
  readonly ips: readonly Ip[];
}

/** Maintains the set of addresses that a pod has, to which the node's kernel may send. */
export class PresentPods {
  readonly #socket: NetlinkSocket;
  readonly #absent: ReturnType<typeof absentRuleset>;
  /** By their owners' keys. */
  readonly #pods = new Map<string, readonly Ip[]>();

  /** @param socket for packet filters. Kept open, since closing it waits for its deletions. */
  constructor(socket: NetlinkSocket, network: Routed) {
    this.#socket = socket;
    this.#absent = absentRuleset(network);
  }

  /**
   * Existing pods. They are written all at once by `install`, because a set with only one of them would cut the others
   * off.
   */
  restore(pods: Iterable<PresentPod>): void {
    for (const { owner, ips } of pods) this.#pods.set(ownerKey(owner), ips);
  }

  /** Installs rules and addresses, and removes addresses that no pod has. @throws {NetlinkError} */
  install(): void {
    installRuleset(this.#socket, this.#absent.ruleset, this.#all());
  }

  /** To be called before the pod can be reached. Deleted rules are installed again. @throws {NetlinkError} */
  admit({ owner, ips }: PresentPod): void {
    const key = ownerKey(owner);
    const before = this.#pods.get(key) ?? [];
    this.#pods.set(key, ips);
    try {
      putElements(this.#socket, presentElements(this.#absent.sets, ips));
    } catch (caught) {
      if (!isErrno(caught, Errno.ENOENT)) throw caught;
      this.install();
    }
    this.#take(before);
  }

  /** To be called once the pod need not be reached any more. @throws {NetlinkError} */
  dismiss(owner: Owner): void {
    const key = ownerKey(owner);
    const before = this.#pods.get(key) ?? [];
    this.#pods.delete(key);
    this.#take(before);
  }

  /** What is not as it should be, in sentences. @throws {NetlinkError} */
  missing(): readonly string[] {
    return missingFromRuleset(this.#socket, this.#absent.ruleset, this.#all());
  }

  /** Only addresses that no other pod has, since an address may have a new pod already. */
  #take(ips: readonly Ip[]): void {
    if (ips.length === 0) return;
    const others = [...this.#pods.values()].flat();
    const absent = ips.filter((ip) => !others.some((other) => sameIp(ip, other)));
    if (absent.length > 0) takeElements(this.#socket, presentElements(this.#absent.sets, absent));
  }

  #all(): readonly Element[] {
    return presentElements(this.#absent.sets, [...this.#pods.values()].flat());
  }
}
