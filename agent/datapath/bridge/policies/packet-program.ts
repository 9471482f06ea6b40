import {
  addElements,
  appendRule,
  clearChain,
  clearSet,
  createChain,
  createCounter,
  createSet,
  createTable,
  deleteChain,
  deleteCounter,
  deleteElements,
  deleteSet,
  deleteTable,
  type Element,
  type Hook,
  type Message,
  type PacketSet,
  type Rule,
  type Table,
} from "../../../protocols/netlink/mod.ts";

/** A set with exactly these elements. */
export interface FilledSet {
  readonly set: PacketSet;
  /** By their bytes in hexadecimal. The same map has the same elements, so that thousands need not be compared. */
  readonly elements: ReadonlyMap<string, Element>;
}

/** A chain with exactly these rules. */
export interface FilledChain {
  readonly table: Table;
  readonly name: string;
  readonly hook?: Hook;
  /** Tells the rules: chains of equal text have equal rules. */
  readonly text: string;
  rules(): readonly Rule[];
}

/** What is to stand in nftables: sets, counters and chains by table and name. */
export interface PacketProgram {
  /** All of it is ours, and goes where a program is installed. */
  readonly table: Table;
  readonly sets: ReadonlyMap<string, FilledSet>;
  /** In `table`. */
  readonly counters: ReadonlySet<string>;
  readonly chains: ReadonlyMap<string, FilledChain>;
}

export const placeOf = ({ table, name }: { readonly table: Table; readonly name: string }): string =>
  `${table.family} ${table.name} ${name}`;

/** Elements of one message: its list must stay below 64 KiB. */
const maxPerMessage = 400;

/** The messages of one transaction that turns what stands into another program. */
export function changesBetween(before: PacketProgram, after: PacketProgram): readonly Message[] {
  const [newSets, oldSets] = apart(before.sets, after.sets);
  const [newChains, oldChains] = apart(before.chains, after.chains);
  const changed = [...after.chains].flatMap(([place, chain]) => {
    const standing = before.chains.get(place);
    return standing === undefined || standing.text === chain.text ? [] : [chain];
  });
  const { table } = after;
  return [
    ...newSets.map(({ set }, i) => createSet(set, i + 1)),
    ...[...after.counters].filter((name) => !before.counters.has(name)).map((name) => createCounter(table, name)),
    ...newChains.map(({ table, name, hook }) => createChain(table, name, hook)),
    ...changed.map(({ table, name }) => clearChain(table, name)),
    ...[...newChains, ...changed].flatMap((chain) => chain.rules().map(appendRule)),
    ...[...after.sets].flatMap(([place, wanted]) => elementChanges(before.sets.get(place), wanted)),
    // Chains that go may lead to each other.
    ...oldChains.map(({ table, name }) => clearChain(table, name)),
    ...oldChains.map(({ table, name }) => deleteChain(table, name)),
    ...oldSets.map(({ set }) => deleteSet(set)),
    ...[...before.counters].filter((name) => !after.counters.has(name)).map((name) => deleteCounter(table, name)),
  ];
}

/** The messages of one transaction after which exactly this program stands, whatever was there. */
export function installation(wanted: PacketProgram): readonly Message[] {
  const { table } = wanted;
  const isElsewhere = (of: Table): boolean => of.family !== table.family || of.name !== table.name;
  const sets = [...wanted.sets.values()].map(({ set }) => set);
  const chains = [...wanted.chains.values()];
  return [
    // So that there is one to delete.
    createTable(table),
    deleteTable(table),
    createTable(table),
    ...new Map(chains.map((chain) => [`${chain.table.family} ${chain.table.name}`, createTable(chain.table)])).values(),
    ...sets.map((set, i) => createSet(set, i + 1)),
    ...sets.filter((set) => isElsewhere(set.table)).map(clearSet),
    ...[...wanted.counters].map((name) => createCounter(table, name)),
    ...chains.map(({ table, name, hook }) => createChain(table, name, hook)),
    ...chains.filter((chain) => isElsewhere(chain.table)).map(({ table, name }) => clearChain(table, name)),
    ...chains.flatMap((chain) => chain.rules().map(appendRule)),
    ...[...wanted.sets.values()].flatMap((set) => elementChanges(undefined, set)),
  ];
}

/** What is only in `after`, and what is only in `before`. */
function apart<T>(before: ReadonlyMap<string, T>, after: ReadonlyMap<string, T>): readonly [T[], T[]] {
  const only = (one: ReadonlyMap<string, T>, other: ReadonlyMap<string, T>): T[] =>
    [...one].filter(([place]) => !other.has(place)).map(([, value]) => value);
  return [only(after, before), only(before, after)];
}

function elementChanges(before: FilledSet | undefined, { elements }: FilledSet): readonly Message[] {
  if (before?.elements === elements) return [];
  const standing = before?.elements ?? new Map<string, Element>();
  const isOther = (one: Element, other: Element | undefined): boolean => other?.chain !== one.chain;
  const gone = [...standing].filter(([key, element]) => !elements.has(key) || isOther(element, elements.get(key)));
  const come = [...elements].filter(([key, element]) => !standing.has(key) || isOther(element, standing.get(key)));
  return [...inMessages(gone, deleteElements), ...inMessages(come, addElements)];
}

function inMessages(
  elements: readonly (readonly [string, Element])[],
  message: (elements: readonly [Element, ...Element[]]) => Message,
): readonly Message[] {
  const messages: Message[] = [];
  for (let at = 0; at < elements.length; at += maxPerMessage) {
    const [first, ...rest] = elements.slice(at, at + maxPerMessage).map(([, element]) => element);
    if (first !== undefined) messages.push(message([first, ...rest]));
  }
  return messages;
}
