import type { Action, Connection } from "./action.ts";
import { defaultPriority, type FlowFlag } from "./constants.ts";
import type { Field } from "./fields.ts";
import type { Learn } from "./learn.ts";
import { exactly, type Match, MatchBuilder, matchAll, missingFor } from "./match.ts";
import { InvalidFlow } from "./openflow-error.ts";

/** What a flow does, in the order in which the switch does it (OpenFlow 1.5.1, 5.5). */
export interface Instructions {
  /** Done at once, one after the other. */
  readonly actions: readonly Action[];
  /** Empties the action set, which is carried out when no table follows. */
  readonly clearActions: boolean;
  /** Put into the action set. */
  readonly writeActions: readonly Action[];
  readonly metadata: { readonly value: bigint; readonly mask: bigint } | undefined;
  readonly gotoTable: number | undefined;
}

/** One flow of a table. Timeouts in seconds, 0 none. */
export interface Flow extends Instructions {
  readonly table: number;
  readonly priority: number;
  /** 64 bits that mean nothing to the switch. */
  readonly cookie: bigint;
  readonly match: Match;
  readonly idleTimeout: number;
  readonly hardTimeout: number;
  readonly importance: number;
  readonly flags: readonly FlowFlag[];
}

const none: Instructions = {
  actions: [],
  clearActions: false,
  writeActions: [],
  metadata: undefined,
  gotoTable: undefined,
};

/** As ovs-ofctl has a flow of which nothing is said. */
export const ordinary: Flow = {
  ...none,
  table: 0,
  priority: defaultPriority,
  cookie: 0n,
  match: matchAll,
  idleTimeout: 0,
  hardTimeout: 0,
  importance: 0,
  flags: [],
};

/**
 * Makes a flow of what is given, the rest as ovs-ofctl has it; no action drops.
 * @throws {InvalidFlow} where a number is out of its range, or an action needs what the match does not say
 */
export function flow(given: Partial<Flow>): Flow {
  const made: Flow = { ...ordinary, ...given };
  const what = `a flow of table ${made.table}`;
  const within = (name: string, value: number, most: number): void => {
    if (!Number.isInteger(value) || value < 0 || value > most) {
      throw new InvalidFlow(what, `${name} is ${value}, wanted 0 to ${most}`);
    }
  };
  within("table", made.table, 254);
  within("priority", made.priority, 0xffff);
  within("idleTimeout", made.idleTimeout, 0xffff);
  within("hardTimeout", made.hardTimeout, 0xffff);
  within("importance", made.importance, 0xffff);
  if (made.cookie < 0n || made.cookie > 0xffff_ffff_ffff_fffen) {
    throw new InvalidFlow(what, `cookie is ${made.cookie}, wanted 64 bits, not all of them ones`);
  }
  if (made.gotoTable !== undefined && made.gotoTable <= made.table) {
    throw new InvalidFlow(what, `it goes to table ${made.gotoTable}, wanted a later one; "resubmit" goes back`);
  }
  checkActions(made.actions, made.match, what);
  checkActions(made.writeActions, made.match, what);
  return made;
}

/**
 * Checks each action against the match: a field's prerequisites must be matched, otherwise the switch refuses the flow
 * (OFPBAC_MATCH_INCONSISTENT), or an older one ignores such packets.
 * @throws {InvalidFlow}
 */
function checkActions(actions: readonly Action[], match: Match, what: string): void {
  let under = match;
  for (const action of actions) {
    const missing = missingOf(action, under);
    if (missing !== undefined) throw new InvalidFlow(what, `its action "${action.t}": ${missing}`);
    under = after(action, under);
  }
  if (actions.some(({ t }) => t === "conjunction") && actions.some(({ t }) => t !== "conjunction" && t !== "note")) {
    throw new InvalidFlow(what, 'it has other actions beside "conjunction", wanted "note" at the most');
  }
}

/** A tag that an action adds or takes away changes what later ones may set. */
function after(action: Action, under: Match): Match {
  if (action.t !== "push-vlan" && action.t !== "pop-vlan") return under;
  const others = under.fields.filter(({ field }) => field.name !== "vlan_vid" && field.name !== "vlan_pcp");
  const tag = action.t === "push-vlan" ? new MatchBuilder().vlan("any").list() : [];
  return { fields: [...others, ...tag], unknown: under.unknown };
}

function missingOf(action: Action, under: Match): string | undefined {
  switch (action.t) {
    case "set-field":
      return missing(action.field, under);
    case "move":
      return missing(action.source.field, under) ?? missing(action.destination.field, under);
    case "output-field":
      return missing(action.source.field, under);
    case "dec-ttl":
      return isIp(under) ? undefined : needsIp;
    case "ct":
      return missingOfConnection(action, under);
    case "learn":
      return missingOfLearn(action, under);
    default:
      return undefined;
  }
}

const needsIp = 'it needs protocol "ip" or "ipv6", which the match does not say';
const etherType = (under: Match): bigint | undefined => exactly(under, "eth_type");
const isIp = (under: Match): boolean => etherType(under) === 0x0800n || etherType(under) === 0x86ddn;

const hasTag = (under: Match): boolean =>
  under.fields.some(({ field: { name }, value }) => name === "vlan_vid" && (value & 0x1000n) !== 0n);

function missing(field: Field, under: Match): string | undefined {
  // A VLAN's number may be set with a tag only, though it may be matched without one.
  if (field.name === "vlan_vid" && !hasTag(under)) return "it needs a VLAN tag, which the match does not say";
  const is = missingFor(field, under);
  return is === undefined ? undefined : `of ${field.name}, ${is}`;
}

function missingOfConnection(action: Connection, under: Match): string | undefined {
  if (!isIp(under)) return needsIp;
  const { nat } = action;
  if (nat?.from !== undefined) {
    const family = etherType(under) === 0x0800n ? 4 : 6;
    if (nat.from.family !== family) return `its address is of IPv${nat.from.family}, the match is of IPv${family}`;
  }
  for (const inner of action.exec) {
    const reason = missingOf(inner, under);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** Sources are read from the packet at hand; the learned flow has to fulfil its own needs. */
function missingOfLearn({ specs }: Learn, under: Match): string | undefined {
  const learned = new MatchBuilder();
  for (const spec of specs) {
    if (!("number" in spec.source)) {
      const reason = missing(spec.source.field, under);
      if (reason !== undefined) return reason;
    }
    if (spec.t !== "match") continue;
    const { field, from, count } = spec.destination;
    const reason = missingFor(field, { ...matchAll, fields: learned.list() });
    if (reason !== undefined) return `it would match ${field.name}, and ${reason} before`;
    const shift = BigInt(from);
    // The match at hand may fix the packet's own value; one that is known only at run time counts as 0.
    const value = "number" in spec.source ? spec.source.number : (valueUnder(field, under) ?? 0n);
    learned.take(field, value << shift, ((1n << BigInt(count)) - 1n) << shift);
  }
  return undefined;
}

const valueUnder = (field: Field, under: Match): bigint | undefined => exactly(under, field.name);
