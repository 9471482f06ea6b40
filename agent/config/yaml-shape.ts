import { type Document, isAlias, isMap, isScalar, isSeq, type Node, visit } from "yaml";
import { isObject, show } from "../../shared/schema/json-fields.ts";
import { didYouMean } from "../../shared/schema/near.ts";

/**
 * What a YAML document must look like, as data: one walk over the document finds every fault with
 * its place, and another reader of the same data (a test, the help) can tell which keys there are.
 */
export type Shape =
  | { readonly t: "string"; readonly wanted: string; readonly wrong?: (text: string) => string | undefined }
  | { readonly t: "integer"; readonly least: number; readonly most: number }
  | { readonly t: "boolean" }
  | { readonly t: "list"; readonly of: Shape; readonly least: number; readonly most: number }
  | { readonly t: "map"; readonly keys: Readonly<Record<string, Shape>>; readonly required: readonly string[] }
  /** Passed on as it is to somebody else who knows its keys; must be a map whose value has a JSON form. */
  | { readonly t: "foreign"; readonly wanted: string; readonly wrong: (value: object) => string | undefined };

/** One fault: where (a character offset) and the sentence about it. */
export interface ShapeProblem {
  readonly offset: number;
  readonly text: string;
}

/** Plain values, with the offset of each under its path (`networks[0].mtu`) for checks that need more than one key. */
export interface Shaped {
  readonly value: unknown;
  readonly offsets: ReadonlyMap<string, number>;
  readonly problems: readonly ShapeProblem[];
}

/** Nesting is bounded by the shape itself; this bounds what aliases may blow up to. */
const mostAliases = 100;

/** Compares the whole document with `shape`. An empty document reads as an empty map. */
export function readShape(doc: Document, shape: Shape): Shaped {
  const problems: ShapeProblem[] = [];
  const offsets = new Map<string, number>();
  const value = walk({ doc, problems, offsets, targets: undefined, aliases: 0 }, doc.contents, shape, "", 0);
  return { value, offsets, problems };
}

/**
 * As `readShape` for a plain value, which knows no places: a hundred times faster where all is in order. Answers the
 * path of the first fault, or nothing.
 * @param strangers what keys are that the shape does not have: in what a program has written a later release may have more
 */
export function misfit(
  value: unknown,
  shape: Shape,
  strangers: "faults" | "ignored" = "faults",
  path = "",
): string | undefined {
  switch (shape.t) {
    case "map": {
      if (!isObject(value)) return name(path);
      const inner = (key: string): string => (path === "" ? key : `${path}.${key}`);
      const missing = shape.required.find((key) => !Object.hasOwn(value, key));
      if (missing !== undefined) return name(inner(missing));
      return firstOf(Object.entries(value), ([key, of]) => {
        const wanted = Object.hasOwn(shape.keys, key) ? shape.keys[key] : undefined;
        if (wanted !== undefined) return misfit(of, wanted, strangers, inner(key));
        return strangers === "faults" ? name(inner(key)) : undefined;
      });
    }
    case "list":
      if (!Array.isArray(value) || value.length < shape.least || value.length > shape.most) return name(path);
      return firstOf(value, (of, i) => misfit(of, shape.of, strangers, `${path}[${i}]`));
    case "foreign":
      return isObject(value) && shape.wrong(value) === undefined ? undefined : name(path);
    default:
      return walkScalar(value, shape, () => undefined) === undefined ? name(path) : undefined;
  }
}

function firstOf<T>(values: readonly T[], fault: (value: T, i: number) => string | undefined): string | undefined {
  for (const [i, value] of values.entries()) {
    const found = fault(value, i);
    if (found !== undefined) return found;
  }
  return undefined;
}

interface Walk {
  readonly doc: Document;
  readonly problems: ShapeProblem[];
  readonly offsets: Map<string, number>;
  /** What each alias stands for; found when the first one comes. */
  targets: ReadonlyMap<unknown, Node> | undefined;
  /** Unfolded so far. */
  aliases: number;
}

function walk(at: Walk, given: unknown, shape: Shape, path: string, parentOffset: number): unknown {
  const offset = (given as Node | null)?.range?.[0] ?? parentOffset;
  if (isAlias(given) && ++at.aliases > mostAliases) {
    at.problems.push({ offset, text: `${name(path)} is alias ${at.aliases}, wanted ${mostAliases} at the most` });
    return undefined;
  }
  if (isAlias(given)) at.targets ??= aliasTargets(at.doc);
  const node = (isAlias(given) ? at.targets?.get(given) : given) as Node | null | undefined;
  at.offsets.set(path, offset);
  const refuse = (wanted: string): undefined => {
    at.problems.push({ offset, text: `${name(path)} is ${describe(node)}, wanted ${wanted}` });
    return undefined;
  };
  if (shape.t === "map") {
    const empty = path === "" && (node === null || (isScalar(node) && node.value === null));
    if (!isMap(node) && !empty) return refuse(`a map with the keys ${Object.keys(shape.keys).join(", ")}`);
    return walkMap(at, isMap(node) ? node.items : [], shape, path, offset);
  }
  if (shape.t === "list") {
    if (!isSeq(node) || node.items.length < shape.least || node.items.length > shape.most)
      return refuse(`a list of ${shape.least} to ${shape.most} entries`);
    return node.items.map((item, i) => walk(at, item, shape.of, `${path}[${i}]`, offset));
  }
  if (shape.t === "foreign") {
    const plain = isMap(node) ? plainOf(at.doc, node) : undefined;
    const problem = isObject(plain) ? shape.wrong(plain) : undefined;
    if (!isObject(plain)) return refuse(shape.wanted);
    if (problem === undefined) return plain;
    at.problems.push({ offset, text: `${problem}, wanted ${shape.wanted}`.replace("$", path) });
    return undefined;
  }
  return walkScalar(isScalar(node) ? node.value : undefined, shape, refuse);
}

/** An alias stands for the last node before it with its anchor. One pass: the library makes one for each alias. */
function aliasTargets(doc: Document): ReadonlyMap<unknown, Node> {
  const anchored = new Map<string, Node>();
  const targets = new Map<unknown, Node>();
  visit(doc, {
    Node: (_, node) => {
      const target = isAlias(node) ? anchored.get(node.source) : undefined;
      if (target !== undefined) targets.set(node, target);
      if ("anchor" in node && node.anchor !== undefined) anchored.set(node.anchor, node);
    },
  });
  return targets;
}

function walkScalar(
  value: unknown,
  shape: Extract<Shape, { t: "string" | "integer" | "boolean" }>,
  refuse: (wanted: string) => undefined,
): unknown {
  switch (shape.t) {
    case "string":
      return typeof value === "string" && shape.wrong?.(value) === undefined ? value : refuse(shape.wanted);
    case "integer": {
      const fits = Number.isSafeInteger(value) && Number(value) >= shape.least && Number(value) <= shape.most;
      return fits ? value : refuse(`a whole number from ${shape.least} to ${shape.most}`);
    }
    case "boolean":
      return typeof value === "boolean" ? value : refuse("true or false");
  }
}

function walkMap(
  at: Walk,
  items: readonly { key: unknown; value: unknown }[],
  shape: Extract<Shape, { t: "map" }>,
  path: string,
  offset: number,
): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const item of items) {
    const key = isScalar(item.key) ? String(item.key.value) : describe(item.key as Node);
    const keyPath = path === "" ? key : `${path}.${key}`;
    const keyOffset = (item.key as Node | null)?.range?.[0] ?? offset;
    const inner = Object.hasOwn(shape.keys, key) ? shape.keys[key] : undefined;
    if (inner === undefined) {
      const known = Object.keys(shape.keys).join(", ");
      const meant = didYouMean(key, Object.keys(shape.keys));
      at.problems.push({
        offset: keyOffset,
        text: `${name(keyPath)} is an unknown key${meant}, wanted one of ${known}`,
      });
      continue;
    }
    out[key] = walk(at, item.value, inner, keyPath, keyOffset);
  }
  for (const key of shape.required) {
    if (items.some((item) => isScalar(item.key) && item.key.value === key)) continue;
    at.problems.push({ offset, text: `${name(path === "" ? key : `${path}.${key}`)} is missing, wanted it set` });
  }
  return out;
}

const name = (path: string): string => (path === "" ? "the document" : `"${path}"`);

function describe(node: Node | null | undefined): string {
  if (node === null || node === undefined) return "empty";
  if (isScalar(node)) return node.value === null ? "empty" : show(node.value);
  if (isSeq(node)) return `a list of ${node.items.length} entries`;
  return isMap(node) ? "a map" : "no plain value";
}

/** `undefined` where the aliases inside would unfold without end. */
function plainOf(doc: Document, node: Node): unknown {
  try {
    return node.toJS(doc, { maxAliasCount: mostAliases });
  } catch {
    return undefined;
  }
}

/** Every key of a shape by its path without indexes: `networks.subnets`. Lists stand for their entries. */
export function keysOf(shape: Shape, path = ""): string[] {
  if (shape.t === "list") return keysOf(shape.of, path);
  if (shape.t !== "map") return [];
  return Object.entries(shape.keys).flatMap(([key, inner]) => {
    const at = path === "" ? key : `${path}.${key}`;
    return [at, ...keysOf(inner, at)];
  });
}
