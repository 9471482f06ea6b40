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
  type Element,
  type Hook,
  type Message,
  type PacketSet,
  type Rule,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { elementMessages } from "../../linux/set-elements.ts";

/** A set with exactly these elements. */
export interface FilledSet {
  readonly set: PacketSet;
  /** By their bytes in hexadecimal. The same map has the same elements, so that thousands need not be compared. */
  readonly elements: ReadonlyMap<string, Element>;
  /** It stands with others, which cannot be told. */
  readonly isSpoilt?: boolean;
}

/** A chain with exactly these rules. */
export interface FilledChain {
  readonly table: Table;
  readonly name: string;
  readonly hook?: Hook;
  /** Tells the rules: chains of equal text have equal rules. */
  readonly text: string;
  /** Its name tells them too, so that it is never changed. */
  readonly isOfContent?: boolean;
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

/** How one program becomes another. */
export interface ProgramChange {
  /** What no packet meets yet, so that it may come in several transactions. */
  readonly prepare: readonly Message[];
  /** The change itself, in one transaction: old and new are never both absent, nor mixed. */
  readonly put: readonly Message[];
  /**
   * Takes away what no packet meets any more. To be done with the next change: while a processor is held up in the
   * middle of a packet, that packet still meets it.
   */
  readonly sweep: readonly Message[];
}

export function changesBetween(before: PacketProgram, after: PacketProgram): ProgramChange {
  const { table } = after;
  const pairs = after.parts.flatMap((part, i): readonly (readonly [ProgramPart, ProgramPart])[] => {
    const standing = before.parts[i] ?? nothing;
    return standing === part ? [] : [[standing, part]];
  });
  const of = <T>(pick: (before: ProgramPart, after: ProgramPart) => readonly T[]): readonly T[] =>
    pairs.flatMap(([standing, part]) => pick(standing, part));
  const newSets = of(({ sets }, part) => onlyIn(part.sets, sets));
  const oldSets = of(({ sets }, part) => onlyIn(sets, part.sets));
  const newChains = of(({ chains }, part) => onlyIn(part.chains, chains));
  const oldChains = of(({ chains }, part) => onlyIn(chains, part.chains));
  const [bases, reached] = [newChains.filter(({ hook }) => hook), newChains.filter(({ hook }) => !hook)];
  const changed = of(({ chains }, part) =>
    [...part.chains].flatMap(([place, chain]) => {
      const standing = chains.get(place);
      return standing === undefined || standing.text === chain.text ? [] : [chain];
    }),
  );
  const tables = new Map([...newSets.map(({ set }) => set), ...newChains].map((each) => [tableOf(each), each.table]));
  return {
    prepare: [
      ...[...tables.values()].map(createTable),
      ...newSets.map(({ set }, i) => createSet(set, i + 1)),
      ...of(({ counters }, part) => [...part.counters].filter((name) => !counters.has(name))).map((name) =>
        createCounter(table, name),
      ),
      ...reached.map(({ table, name }) => createChain(table, name)),
      ...reached.flatMap((chain) => chain.rules().map(appendRule)),
      ...newSets.flatMap((set) => elementChanges(undefined, set)),
    ],
    put: [
      ...bases.map(({ table, name, hook }) => createChain(table, name, hook)),
      ...changed.map(({ table, name }) => clearChain(table, name)),
      ...[...bases, ...changed].flatMap((chain) => chain.rules().map(appendRule)),
      ...of(({ sets }, part) =>
        [...part.sets].flatMap(([place, wanted]) => {
          const standing = sets.get(place);
          return standing === undefined ? [] : elementChanges(standing, wanted);
        }),
      ),
    ],
    sweep: [
      // Chains that go may lead to each other.
      ...oldChains.map(({ table, name }) => clearChain(table, name)),
      ...oldChains.map(({ table, name }) => deleteChain(table, name)),
      ...oldSets.map(({ set }) => deleteSet(set)),
      ...of(({ counters }, part) => [...counters].filter((name) => !part.counters.has(name))).map((name) =>
        deleteCounter(table, name),
      ),
    ],
  };
}

const tableOf = ({ table }: { readonly table: Table }): string => `${table.family} ${table.name}`;

const onlyIn = <T>(one: ReadonlyMap<string, T>, other: ReadonlyMap<string, T>): readonly T[] =>
  [...one].filter(([place]) => !other.has(place)).map(([, value]) => value);

function elementChanges(before: FilledSet | undefined, { elements }: FilledSet): readonly Message[] {
  if (before?.elements === elements) return [];
  if (before?.isSpoilt) return [clearSet(before.set), ...elementMessages([...elements.values()], addElements)];
  const standing = before?.elements ?? new Map<string, Element>();
  const isOther = (one: Element, other: Element | undefined): boolean => other?.chain !== one.chain;
  const gone = [...standing].filter(([key, element]) => !elements.has(key) || isOther(element, elements.get(key)));
  const come = [...elements].filter(([key, element]) => !standing.has(key) || isOther(element, standing.get(key)));
  const only = (pairs: readonly (readonly [string, Element])[]): readonly Element[] => pairs.map(([, one]) => one);
  return [...elementMessages(only(gone), deleteElements), ...elementMessages(only(come), addElements)];
}
