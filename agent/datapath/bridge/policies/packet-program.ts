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

/** Sets and chains by their places, and counters of the program's table. */
export interface ProgramPart {
  readonly sets: ReadonlyMap<string, FilledSet>;
  readonly counters: ReadonlySet<string>;
  readonly chains: ReadonlyMap<string, FilledChain>;
}

/** What is to stand in nftables. */
export interface PacketProgram {
  /** All of it is ours, and goes where a program is installed. */
  readonly table: Table;
  /** Always as many, with the same kinds of things. The same part has not changed, so that nothing in it is compared. */
  readonly parts: readonly ProgramPart[];
}

export const placeOf = ({ table, name }: { readonly table: Table; readonly name: string }): string =>
  `${table.family} ${table.name} ${name}`;

/** Elements of one message: its list must stay below 64 KiB. */
const maxPerMessage = 400;

/** Collects a part. */
export class PartDraft implements ProgramPart {
  readonly sets = new Map<string, FilledSet>();
  readonly counters = new Set<string>();
  readonly chains = new Map<string, FilledChain>();

  addSet(set: FilledSet): void {
    this.sets.set(placeOf(set.set), set);
  }

  addChain(chain: FilledChain): void {
    this.chains.set(placeOf(chain), chain);
  }
}

const nothing = new PartDraft();

/** The messages of one transaction that turns what stands into another program. */
export function changesBetween(before: PacketProgram, after: PacketProgram): readonly Message[] {
  const { table } = after;
  const pairs = after.parts.flatMap((part, i): readonly (readonly [ProgramPart, ProgramPart])[] => {
    const standing = before.parts[i] ?? nothing;
    return standing === part ? [] : [[standing, part]];
  });
  const of = <T>(pick: (before: ProgramPart, after: ProgramPart) => readonly T[]): readonly T[] =>
    pairs.flatMap(([standing, part]) => pick(standing, part));
  const newChains = of(({ chains }, part) => onlyIn(part.chains, chains));
  const oldChains = of(({ chains }, part) => onlyIn(chains, part.chains));
  const changed = of(({ chains }, part) =>
    [...part.chains].flatMap(([place, chain]) => {
      const standing = chains.get(place);
      return standing === undefined || standing.text === chain.text ? [] : [chain];
    }),
  );
  return [
    ...of(({ sets }, part) => onlyIn(part.sets, sets)).map(({ set }, i) => createSet(set, i + 1)),
    ...of(({ counters }, part) => [...part.counters].filter((name) => !counters.has(name))).map((name) =>
      createCounter(table, name),
    ),
    ...newChains.map(({ table, name, hook }) => createChain(table, name, hook)),
    ...changed.map(({ table, name }) => clearChain(table, name)),
    ...[...newChains, ...changed].flatMap((chain) => chain.rules().map(appendRule)),
    ...of(({ sets }, part) => [...part.sets].flatMap(([place, wanted]) => elementChanges(sets.get(place), wanted))),
    // Chains that go may lead to each other.
    ...oldChains.map(({ table, name }) => clearChain(table, name)),
    ...oldChains.map(({ table, name }) => deleteChain(table, name)),
    ...of(({ sets }, part) => onlyIn(sets, part.sets)).map(({ set }) => deleteSet(set)),
    ...of(({ counters }, part) => [...counters].filter((name) => !part.counters.has(name))).map((name) =>
      deleteCounter(table, name),
    ),
  ];
}

/** The messages of one transaction after which exactly this program stands, whatever was there. */
export function installation(wanted: PacketProgram): readonly Message[] {
  const { table } = wanted;
  const isElsewhere = (of: Table): boolean => of.family !== table.family || of.name !== table.name;
  const filled = wanted.parts.flatMap(({ sets }) => [...sets.values()]);
  const sets = filled.map(({ set }) => set);
  const chains = wanted.parts.flatMap((part) => [...part.chains.values()]);
  return [
    // So that there is one to delete.
    createTable(table),
    deleteTable(table),
    createTable(table),
    ...new Map(chains.map((chain) => [`${chain.table.family} ${chain.table.name}`, createTable(chain.table)])).values(),
    ...sets.map((set, i) => createSet(set, i + 1)),
    ...sets.filter((set) => isElsewhere(set.table)).map(clearSet),
    ...wanted.parts.flatMap(({ counters }) => [...counters].map((name) => createCounter(table, name))),
    ...chains.map(({ table, name, hook }) => createChain(table, name, hook)),
    ...chains.filter((chain) => isElsewhere(chain.table)).map(({ table, name }) => clearChain(table, name)),
    ...chains.flatMap((chain) => chain.rules().map(appendRule)),
    ...filled.flatMap((set) => elementChanges(undefined, set)),
  ];
}

const onlyIn = <T>(one: ReadonlyMap<string, T>, other: ReadonlyMap<string, T>): readonly T[] =>
  [...one].filter(([place]) => !other.has(place)).map(([, value]) => value);

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
