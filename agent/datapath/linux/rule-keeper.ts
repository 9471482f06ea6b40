import {
  appendRule,
  askForChain,
  clearChain,
  createChain,
  createSet,
  createTable,
  type Element,
  type Hook,
  type Message,
  type NetlinkSocket,
  type PacketSet,
  type Rule,
  readRuleCount,
  type Table,
} from "../../protocols/netlink/mod.ts";
import { elementName, putElements, standingElements, takeElements, unlessMissing } from "./set-elements.ts";

const looks = 3;
const betweenLooksMs = 50;

/**
 * What the last of several looks lacks, where each of them lacks something. While a process loads rules anew, the
 * kernel counts those of a transaction that is not in force yet, and for a moment lists old and new ones: a single look
 * would call rules missing that never were.
 */
export async function stillMissing(look: () => readonly string[]): Promise<readonly string[]> {
  for (let left = looks - 1; ; left--) {
    const missing = look();
    if (missing.length === 0 || left === 0) return missing;
    await Bun.sleep(betweenLooksMs);
  }
}

const stand = " packet rules stand in the table ";
const ofPods = "packet rules about pods";

/** `0 of 2 packet rules stand in the table "pipette-pipette0"`: used by the agent and by the doctor. */
export const rulesProblem = (found: number, wanted: number, table: string): string =>
  `${found} of ${wanted}${stand}"${table}"`;

/**
 * The problem text for rules with sets of pods, whose elements only the agent knows.
 * @param elements how many are missing; absent: rules are
 */
const podRulesProblem = (table: string, elements?: number): string =>
  elements === undefined
    ? `the ${ofPods} are not all there in the table "${table}"`
    : `the ${ofPods} lack ${elements} elements in the table "${table}"`;

export const isRulesProblem = (sentence: string): boolean => sentence.includes(stand) || sentence.includes(ofPods);

/** Constant packet rules, and the sets that they use, whose elements change with pods. */
export interface Ruleset {
  readonly table: Table;
  readonly sets: readonly PacketSet[];
  /** Base chains with their hooks; the other chains are reached by rules. */
  readonly hooks: ReadonlyMap<string, Hook>;
  readonly rules: readonly Rule[];
}

const chainsOf = ({ rules }: Ruleset): readonly string[] => [...new Set(rules.map(({ chain }) => chain))];

/**
 * Installs a ruleset with exactly these elements; the rest of its table stays. Rules are replaced in one transaction,
 * after new elements were added and before old ones are removed, so that no packet is wrongly dropped or accepted in
 * between.
 * @param socket for packet filters
 * @throws {NetlinkError}
 */
export function installRuleset(socket: NetlinkSocket, ruleset: Ruleset, wanted: readonly Element[]): void {
  const { sets } = ruleset;
  socket.transact(frameOf(ruleset));
  const standing = new Map(standingElements(socket, sets).map((element) => [elementName(element), element]));
  const lacking = wanted.filter((element) => !standing.delete(elementName(element)));
  // Set by set, because the last one marks that the others are complete for a pod.
  for (const set of sets)
    putElements(
      socket,
      lacking.filter((element) => element.set === set),
    );
  socket.transact(rulesAnew(ruleset));
  takeElements(socket, [...standing.values()]);
}

/** Makes table, sets and chains; what stands stays. */
export function frameOf(ruleset: Ruleset): readonly Message[] {
  const { table, sets, hooks } = ruleset;
  return [
    createTable(table),
    ...sets.map((set, i) => createSet(set, i + 1)),
    ...chainsOf(ruleset).map((chain) => createChain(table, chain, hooks.get(chain))),
  ];
}

/** Puts its rules into its chains, instead of any others. */
export const rulesAnew = (ruleset: Ruleset): readonly Message[] => [
  ...chainsOf(ruleset).map((chain) => clearChain(ruleset.table, chain)),
  ...ruleset.rules.map(appendRule),
];

/**
 * What is not as `installRuleset` left it, in sentences. Rules are only counted, because this is checked often.
 * @throws {NetlinkError}
 */
export function missingFromRuleset(
  socket: NetlinkSocket,
  ruleset: Ruleset,
  wanted: readonly Element[],
): readonly string[] {
  const { table, sets } = ruleset;
  const { family, name } = table;
  if (lacksRules(socket, ruleset)) return [podRulesProblem(`${family} ${name}`)];
  const standing = new Set(standingElements(socket, sets).map(elementName));
  const lacking = wanted.filter((element) => !standing.has(elementName(element))).length;
  return lacking === 0 ? [] : [podRulesProblem(`${family} ${name}`, lacking)];
}

/** Whether its chains have other rules than its own, by their number. @throws {NetlinkError} */
export function lacksRules(socket: NetlinkSocket, ruleset: Ruleset): boolean {
  const { table, rules } = ruleset;
  const { family, name } = table;
  const uses = (chain: string): number =>
    unlessMissing(0, () => socket.get(askForChain(name, chain, family), readRuleCount));
  // The kernel's use count of a chain includes the rules that jump to it.
  const usesOf = (name: string): number =>
    rules.filter(({ chain }) => chain === name).length + rules.filter(({ leadsTo }) => leadsTo === name).length;
  return chainsOf(ruleset).some((chain) => uses(chain) !== usesOf(chain));
}
