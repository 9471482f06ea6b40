import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
  type YAMLMap,
} from "yaml";
import { maxErrorChars } from "../errors.ts";
import { brief, printable } from "../printable.ts";
import { reasonOf } from "../reason.ts";
import { maxDepth, parseJson } from "./json.ts";
import type { Schema } from "./schema.ts";
import { Findings, type Issue, nameOf, type Path, validate } from "./validate.ts";

/** What a document says, or every fault of it as `file:line:column: "path" is value, wanted …`, in the file's order. */
export type ReadDocument<T> =
  | { readonly t: "ok"; readonly value: T }
  | { readonly t: "wrong"; readonly problems: readonly string[] };

/** Finds what does not fit together; asked once every value is right. */
export type CrossCheck<T> = (value: T, findings: Findings) => void;

/** Longer YAML keeps the agent from its pods for seconds, as much JSON for milliseconds. */
const maxYamlChars = 1024 * 1024;
/** Of what a parser says, which quotes what it stumbled over, however long it is. */
const maxQuotedChars = 300;
/** A file that is no configuration at all has a fault in every line; the first are enough to see that. */
const maxProblems = 100;
/** How often a document may name what it has written before: nested, each unfolds all that it names. */
const maxAliases = 100;

/** As `readYaml`, for files that may be large: one that is JSON in order is read at once, a large one has to be. */
export function readDocument<T>(text: string, file: string, schema: Schema<T>, check?: CrossCheck<T>): ReadDocument<T> {
  const json = readJson(text, schema, check);
  if (json.t === "ok") return json;
  if (text.length > maxYamlChars)
    return { t: "wrong", problems: [`${file}: ${json.is}, wanted JSON in order where there is more than 1 MiB`] };
  // Whatever is wrong with it, the other reader knows the place.
  return readYaml(text, file, schema, check);
}

function readJson<T>(
  text: string,
  schema: Schema<T>,
  check: CrossCheck<T> | undefined,
): { readonly t: "ok"; readonly value: T } | { readonly t: "wrong"; readonly is: string } {
  let json: unknown;
  try {
    json = parseJson(text);
  } catch (caught) {
    const is = reasonOf(caught);
    return { t: "wrong", is: brief(printable(is), maxQuotedChars) };
  }
  const read = validated(json, schema, check, 1);
  return read.t === "ok" ? read : { t: "wrong", is: brief(printable(read.issues[0]?.text ?? ""), maxErrorChars) };
}

/**
 * Reads YAML 1.2, and so JSON. Nothing else is touched.
 * @param file for the messages
 */
export function readYaml<T>(text: string, file: string, schema: Schema<T>, check?: CrossCheck<T>): ReadDocument<T> {
  const lines = new LineCounter();
  const doc = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: "silent", version: "1.2" });
  const wrong = (problems: readonly { readonly offset: number; readonly text: string }[]): ReadDocument<T> => {
    const sorted = problems.toSorted((a, b) => a.offset - b.offset).slice(0, maxProblems);
    const told = sorted.map(({ offset, text: fault }) => {
      const { line, col } = lines.linePos(offset);
      // Keys and values are quoted as they stand there, which may be anything.
      return brief(printable(`${file}:${line}:${col}: ${fault}`), maxErrorChars);
    });
    const more = problems.length - told.length;
    return { t: "wrong", problems: more === 0 ? told : [...told, `${file}: ${more} more faults`] };
  };
  if (doc.errors.length > 0)
    return wrong(
      doc.errors.map(({ pos, message }) => ({ offset: pos[0], text: `${faultOf(message)}, wanted YAML 1.2` })),
    );
  const tree = new Tree(doc);
  const plain = tree.plain();
  const read =
    tree.issue === undefined ? validated(plain, schema, check) : { t: "wrong" as const, issues: [tree.issue] };
  return read.t === "ok"
    ? read
    : wrong(read.issues.map((issue) => ({ offset: tree.offsetOf(issue), text: issue.text })));
}

function validated<T>(document: unknown, schema: Schema<T>, check: CrossCheck<T> | undefined, maxIssues?: number) {
  const read = validate(schema, document, maxIssues === undefined ? {} : { maxIssues });
  if (read.t === "wrong" || check === undefined) return read;
  const findings = new Findings(document);
  check(read.value, findings);
  return findings.issues.length === 0 ? read : { t: "wrong" as const, issues: findings.issues };
}

/** The first line of what the parser says; where it could not go deeper, it says so in the language's own words. */
const faultOf = (text: string): string =>
  text.startsWith("Maximum call stack") ? "it is nested too deep" : (text.split("\n", 1)[0] ?? "");

/** A YAML document: its plain value, and where each part of that stands. */
class Tree {
  /** What keeps it from having a plain value. */
  issue: Issue | undefined;
  readonly #doc: Document;
  /** What each alias stands for; found when the first one comes. */
  #targets: ReadonlyMap<unknown, Node> | undefined;
  #aliases = 0;
  /** Of maps that faults were found in; each may have thousands. */
  readonly #pairs = new Map<YAMLMap, ReadonlyMap<string, Pair>>();

  constructor(doc: Document) {
    this.#doc = doc;
  }

  plain(): unknown {
    return this.#plain(this.#doc.contents, []);
  }

  /** In characters. Of what is not there, the place of what it is missing in. */
  offsetOf({ path, isKey = false }: Issue): number {
    let node: unknown = this.#doc.contents;
    let offset = startOf(node) ?? 0;
    for (const [i, key] of path.entries()) {
      const parent = this.#behind(node);
      const pair = isMap(parent) ? this.#pairsOf(parent).get(String(key)) : undefined;
      node = isSeq(parent) ? parent.items[Number(key)] : isKey && i === path.length - 1 ? pair?.key : pair?.value;
      offset = startOf(node) ?? offset;
    }
    return offset;
  }

  #pairsOf(map: YAMLMap): ReadonlyMap<string, Pair> {
    const pairs = this.#pairs.get(map) ?? new Map(map.items.map((item) => [keyOf(item), item]));
    this.#pairs.set(map, pairs);
    return pairs;
  }

  #plain(given: unknown, path: Path): unknown {
    if (isAlias(given) && ++this.#aliases > maxAliases)
      return this.#refuse(path, `is alias ${this.#aliases}, wanted ${maxAliases} at the most`);
    if (path.length > maxDepth) return this.#refuse(path, `is nested more than ${maxDepth} deep`);
    const node = this.#behind(given);
    if (this.issue !== undefined) return undefined;
    if (isSeq(node)) return node.items.map((item, i) => this.#plain(item, [...path, i]));
    if (!isMap(node)) return isScalar(node) ? node.value : undefined;
    const plain: Record<string, unknown> = {};
    for (const item of node.items) {
      const key = keyOf(item);
      const value = this.#plain(item.value, [...path, key]);
      // A key such as "__proto__" is a key like any other.
      Object.defineProperty(plain, key, { value, writable: true, enumerable: true, configurable: true });
    }
    return plain;
  }

  #refuse(path: Path, is: string): undefined {
    this.issue ??= { path, text: `${nameOf(path)} ${is}` };
  }

  #behind(node: unknown): unknown {
    if (!isAlias(node)) return node;
    this.#targets ??= aliasTargets(this.#doc);
    return this.#targets.get(node);
  }
}

const startOf = (node: unknown): number | undefined => (node as Node | null | undefined)?.range?.[0];

const keyOf = ({ key }: Pair): string => (isScalar(key) ? String(key.value) : isSeq(key) ? "a list" : "a map");

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
