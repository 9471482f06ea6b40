import {
  appendRule,
  askForChain,
  clearChain,
  createChain,
  createSet,
  createTable,
  type Element,
  type Hook,
  type NetlinkSocket,
  type PacketSet,
  type Rule,
  readRuleCount,
  type Table,
} from "../../protocols/netlink/mod.ts";
import { elementName, putElements, standingElements, takeElements, unlessMissing } from "./set-elements.ts";

const stand = " packet rules stand in the table ";
const ofPods = "packet rules about pods";

/** `0 of 2 packet rules stand in the table "pipette-pipette0"`: by the agent as by who looks from outside. */
export const rulesProblem = (found: number, wanted: number, table: string): string =>
  `${found} of ${wanted}${stand}"${table}"`;

/** Of those that look into sets of pods, whose elements the agent alone knows. @param elements how many are missing; absent: rules are */
const podRulesProblem = (table: string, elements?: number): string =>
  elements === undefined
    ? `the ${ofPods} are not all there in the table "${table}"`
    : `the ${ofPods} lack ${elements} elements in the table "${table}"`;

export const isRulesProblem = (sentence: string): boolean => sentence.includes(stand) || sentence.includes(ofPods);

/** Packet rules that stay as they are, and sets that they look into, whose elements come and go. */
export interface Ruleset {
  readonly table: Table;
  readonly sets: readonly PacketSet[];
  /** Chains that packets come to by themselves; to the others rules lead. */
  readonly hooks: ReadonlyMap<string, Hook>;
  readonly rules: readonly Rule[];
}

const chainsOf = ({ rules }: Ruleset): readonly string[] => [...new Set(rules.map(({ chain }) => chain))];

/**
 * Makes all of a ruleset be there, with these elements and no others; what else is in its table stays. Rules are
 * replaced in one transaction, after the elements that are new and before those that go: nobody's packets are dropped in
 * between, and nobody's let through.
 * @param socket for packet filters
 * @throws {NetlinkError}
 */
export function installRuleset(socket: NetlinkSocket, ruleset: Ruleset, wanted: readonly Element[]): void {
  const { table, sets, hooks, rules } = ruleset;
  const chains = chainsOf(ruleset);
  socket.transact([
    createTable(table),
    ...sets.map(createSet),
    ...chains.map((chain) => createChain(table, chain, hooks.get(chain))),
  ]);
  const standing = new Map(standingElements(socket, sets).map((element) => [elementName(element), element]));
  const lacking = wanted.filter((element) => !standing.delete(elementName(element)));
  // Set by set, so that the last one may say that what the others have about a pod is complete.
  for (const set of sets)
    putElements(
      socket,
      lacking.filter((element) => element.set === set),
    );
  socket.transact([...chains.map((chain) => clearChain(table, chain)), ...rules.map(appendRule)]);
  takeElements(socket, [...standing.values()]);
}

/**
 * What is not as `installRuleset` left it, in sentences. Rules are counted: this is asked again and again.
 * @throws {NetlinkError}
 */
export function missingFromRuleset(
  socket: NetlinkSocket,
  ruleset: Ruleset,
  wanted: readonly Element[],
): readonly string[] {
  const { table, sets, rules } = ruleset;
  const { family, name } = table;
  const uses = (chain: string): number =>
    unlessMissing(0, () => socket.get(askForChain(name, chain, family), readRuleCount));
  // The kernel counts the rules of a chain together with those that lead to it.
  const usesOf = (name: string): number =>
    rules.filter(({ chain }) => chain === name).length + rules.filter(({ leadsTo }) => leadsTo === name).length;
  if (chainsOf(ruleset).some((chain) => uses(chain) !== usesOf(chain))) return [podRulesProblem(`${family} ${name}`)];
  const standing = new Set(standingElements(socket, sets).map(elementName));
  const lacking = wanted.filter((element) => !standing.has(elementName(element))).length;
  return lacking === 0 ? [] : [podRulesProblem(`${family} ${name}`, lacking)];
}
