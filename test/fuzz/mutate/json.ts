import type { Chance, Mutator } from "../engine/target.ts";

type Holder = Record<string, unknown> | unknown[];

const one = <T>(from: readonly T[], chance: Chance): T => from[chance(from.length)] as T;

/** Values that are of another kind, at an end of a range, or dangerous to print, to store or to look up. */
const leaves: readonly unknown[] = [
  ...[null, true, false, 0, -0, -1, 1, 1.5, 1e308, 2 ** 31, 2 ** 32, 2 ** 53, 65_535, 65_536, "", " ", "0", "null"],
  ...["\0", "\n", "\u001b[2J", "\u009b2J", "\u202e", "\u2028", "\ud800", "\ufeff", "é", "%s", "..", "/", "../../etc"],
  ...["/absolute", "C:\\x", "__proto__", "constructor", "toString", "[object Object]", "a".repeat(300), "9".repeat(40)],
  ...["10.0.0.0/29", "10.0.0.3", "fd00::/126", "fd00::2", "::ffff:10.0.0.2", "0.0.0.0/0", "::/0", "10.0.0.9/33"],
  ...["255.255.255.252/30", "1.2.3.4.5", "010.0.0.1", "0a:58:0a:f4:01:02", "2026-01-01T00:00:00Z", {}, []],
];

function holdersOf(value: unknown, found: Holder[] = []): Holder[] {
  if (typeof value !== "object" || value === null || found.length > 2000) return found;
  found.push(value as Holder);
  for (const inner of Object.values(value)) holdersOf(inner, found);
  return found;
}

/** A value of another document, or a leaf. */
function material(other: unknown, chance: Chance): unknown {
  if (chance(2) === 0) return one(leaves, chance);
  const holder = one([...holdersOf(other), [null]], chance);
  const values = Object.values(holder);
  return values.length === 0 ? {} : structuredClone(one(values, chance));
}

const define = (holder: Holder, key: string, value: unknown): void =>
  void Object.defineProperty(holder, key, { value, writable: true, enumerable: true, configurable: true });

function otherCase(key: string, chance: Chance): string {
  return [...key].map((char) => (chance(2) === 0 ? char.toUpperCase() : char.toLowerCase())).join("");
}

function changeText(text: string, chance: Chance): string {
  const at = chance(text.length + 1);
  const leaf = one(leaves, chance);
  const way = chance(5);
  if (way === 0) return text.slice(0, at);
  if (way === 1) return text.slice(0, at) + (typeof leaf === "string" ? leaf : String(chance(300))) + text.slice(at);
  if (way === 2) return text.slice(0, at) + String.fromCharCode(chance(256)) + text.slice(at + 1);
  if (way === 3) return text.replace(/\d+/, () => String(chance(70_000)));
  return text + text;
}

type Change = (holder: Holder, key: string, words: readonly string[], other: unknown, chance: Chance) => void;

const valueAt = (holder: Holder, key: string): unknown => (holder as Record<string, unknown>)[key];

const leaveOut: Change = (holder, key) => {
  if (Array.isArray(holder)) holder.splice(Number(key), 1);
  else delete holder[key];
};

const add: Change = (holder, _key, words, other, chance) =>
  define(holder, Array.isArray(holder) ? String(holder.length) : one(words, chance), material(other, chance));

/** The same once more, under a key that differs in case alone. */
const double: Change = (holder, key, _words, _other, chance) => {
  const copy = structuredClone(valueAt(holder, key));
  define(holder, Array.isArray(holder) ? String(holder.length) : otherCase(key, chance), copy);
};

const wrap: Change = (holder, key, words, _other, chance) => {
  const value = valueAt(holder, key);
  define(holder, key, chance(2) === 0 ? [value] : { [one(words, chance)]: value });
};

const many: Change = (holder, key, _words, _other, chance) => {
  if (!Array.isArray(holder)) return;
  for (let times = chance(60); times > 0; times--) holder.push(structuredClone(valueAt(holder, key)));
};

const word: Change = (holder, key, words, _other, chance) => define(holder, key, one(words, chance));

const another: Change = (holder, key, _words, other, chance) => {
  const value = valueAt(holder, key);
  const isText = typeof value === "string" && chance(3) > 0;
  define(holder, key, isText ? changeText(value, chance) : material(other, chance));
};

const changes: readonly Change[] = [leaveOut, add, double, wrap, many, word, another, another, another];

function changeWithin(holder: Holder, words: readonly string[], other: unknown, chance: Chance): void {
  const keys = Object.keys(holder);
  one(changes, chance)(holder, keys.length === 0 ? "0" : one(keys, chance), words, other, chance);
}

/** How deep a parser may be led. */
function deep(chance: Chance): string {
  const depth = one([40, 500, 20_000], chance);
  const [open, close] = chance(2) === 0 ? ["[", "]"] : ['{"a":', "}"];
  return open.repeat(depth) + (chance(2) === 0 ? `0${close.repeat(depth)}` : "");
}

export interface TreeFormat {
  /** @throws for text that is none */
  parse(text: string): unknown;
  format(value: unknown): string;
}

/** Changes documents as trees; what is no document is left to other mutators. */
export function treeMutator(words: readonly string[], { parse, format }: TreeFormat): Mutator {
  return (input, other, chance) => {
    const text = new TextDecoder().decode(input);
    if (chance(400) === 0) return new TextEncoder().encode(text.replace(/[\d"]/, () => deep(chance)));
    try {
      const tree = parse(text);
      const holders = holdersOf(tree);
      if (holders.length === 0) return input;
      const material = parse(new TextDecoder().decode(other));
      for (let times = 1 + chance(3); times > 0; times--) changeWithin(one(holders, chance), words, material, chance);
      return new TextEncoder().encode(format(tree));
    } catch {
      return input;
    }
  };
}

export const jsonMutator = (words: readonly string[]): Mutator =>
  treeMutator(words, { parse: JSON.parse, format: (value) => JSON.stringify(value) ?? "null" });

/** Documents one after the other, each on a line of its own, as a stream brings them. */
export const jsonLinesMutator = (words: readonly string[]): Mutator =>
  treeMutator(words, {
    parse: (text) =>
      text
        .split("\n")
        .filter((line) => line.trim() !== "")
        .map((line) => JSON.parse(line)),
    format: (value) => (Array.isArray(value) ? value : [value]).map((line) => JSON.stringify(line)).join("\n"),
  });
