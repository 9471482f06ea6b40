import { type Ip, sameIp } from "../../shared/net/ip.ts";
import { type NamedPort, type Port, samePorts } from "../../shared/policy/mod.ts";
import type { AddressSet, RulePorts } from "../datapath/policies.ts";
import type { Member } from "./members.ts";

/** Ports that names stand for, and a text that is the same for the same ones. */
export interface ResolvedPorts {
  readonly text: string;
  readonly ports: readonly RulePorts[];
}

const highestPort = 65_535;

/** What the names in `wanted` stand for at a pod with these ports; a pod may have one name several times. */
export function resolve(wanted: readonly Port[], has: readonly NamedPort[]): ResolvedPorts {
  const found = new Map<string, RulePorts>();
  for (const { protocol, port } of wanted)
    for (const own of has)
      if (own.name === port && own.protocol === protocol && own.port > 0 && own.port <= highestPort)
        found.set(`${protocol}/${own.port}`, { protocol, first: own.port });
  const sorted = [...found].sort(([a], [b]) => (a < b ? -1 : 1));
  return { text: sorted.map(([text]) => text).join(" "), ports: sorted.map(([, port]) => port) };
}

/** Members of a group at whom names of ports stand for the same. */
export interface PartOfGroup {
  readonly resolved: ResolvedPorts;
  readonly set: AddressSet;
}

/** Lists of names of ports of which a group remembers what they stand for: rules that name ports of one group share them. */
const maxParts = 32;

/**
 * Pods that a policy applies to, or its peers. The addresses of peers come as sets, each the same object for as long as
 * its addresses are.
 */
export class PodGroup {
  readonly name: string;
  /** By their keys. */
  #members: ReadonlyMap<string, Member>;
  #set: AddressSet;
  #isChanged = false;
  /** By the names that are to be resolved. */
  readonly #parts = new Map<
    string,
    { readonly parts: readonly PartOfGroup[]; readonly of: ReadonlyMap<string, Member> }
  >();

  constructor(name: string, members: readonly Member[]) {
    this.name = name;
    this.#members = byKey(members);
    this.#set = setOf(name, members, undefined);
  }

  get members(): ReadonlyMap<string, Member> {
    return this.#members;
  }

  replace(members: readonly Member[]): void {
    const now = byKey(members);
    // The same in another order changes nothing.
    if (isSame(this.#members, now)) return;
    this.#members = now;
    this.#isChanged = true;
  }

  /**
   * All additions first, then all removals, as Antrea's agents do it.
   * @throws {Error} where something is removed that is no member: then this is not the group that the controller means
   */
  change(added: readonly Member[], removed: readonly Member[]): void {
    const now = new Map(this.#members);
    for (const member of added) now.set(member.key, member);
    for (const { key } of removed)
      if (!now.delete(key)) throw new Error(`"${key}" leaves the group "${this.name}", in which it is not`);
    this.#members = now;
    this.#isChanged = true;
  }

  get set(): AddressSet {
    if (this.#isChanged) this.#set = setOf(this.name, this.#members.values(), this.#set);
    this.#isChanged = false;
    return this.#set;
  }

  /** Its members by what these names stand for at them; those where they stand for nothing are left out. */
  parts(wanted: readonly Port[]): readonly PartOfGroup[] {
    const names = wanted.map(({ protocol, port }) => `${protocol}/${port}`).join(" ");
    const before = this.#parts.get(names);
    if (before?.of === this.#members) return before.parts;
    const byPorts = new Map<string, { readonly resolved: ResolvedPorts; readonly members: Member[] }>();
    for (const member of this.#members.values()) {
      const resolved = resolve(wanted, member.ports);
      if (resolved.text === "") continue;
      const there = byPorts.get(resolved.text);
      if (there === undefined) byPorts.set(resolved.text, { resolved, members: [member] });
      else there.members.push(member);
    }
    const parts = Array.from(byPorts.values(), ({ resolved, members }): PartOfGroup => {
      const name = `${this.name} ${names} = ${resolved.text}`;
      const earlier = before?.parts.find(({ set }) => set.name === name)?.set;
      return { resolved, set: setOf(name, members, earlier) };
    });
    // Rules that are gone had theirs, too.
    if (this.#parts.size >= maxParts) this.#parts.clear();
    this.#parts.set(names, { parts, of: this.#members });
    return parts;
  }
}

const byKey = (members: readonly Member[]): Map<string, Member> =>
  new Map(members.map((member) => [member.key, member]));

function isSame(a: ReadonlyMap<string, Member>, b: ReadonlyMap<string, Member>): boolean {
  if (a.size !== b.size) return false;
  for (const [key, { ports }] of a) {
    const other = b.get(key);
    if (other === undefined || !samePorts(ports, other.ports)) return false;
  }
  return true;
}

const beyondIpv4 = 1n << 32n;

/** @param before is answered if it has the same addresses */
function setOf(name: string, members: Iterable<Member>, before: AddressSet | undefined): AddressSet {
  const byValue = new Map<bigint, Ip>();
  for (const member of members)
    for (const ip of member.ips) byValue.set(ip.family === 4 ? ip.value : ip.value + beyondIpv4, ip);
  const ips = [...byValue.values()];
  const isKept = before?.ips.length === ips.length && ips.every((ip, i) => sameIp(ip, before.ips[i] as Ip));
  return isKept ? before : { name, ips };
}
