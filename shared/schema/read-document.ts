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

/** Finds contradictions between values; called when every single value is valid. */
export type CrossCheck<T> = (value: T, findings: Findings) => void;

/** Longer YAML would block the agent for seconds; JSON of that length takes milliseconds. */
const maxYamlChars = 1024 * 1024;
/** How much of a parser's message is used, since it quotes the input at any length. */
const maxQuotedChars = 300;
/** A file that is no configuration at all has a fault in every line, so only the first ones are listed. */
const maxProblems = 100;
/** How many aliases a document may have: nested aliases multiply its size. */
const maxAliases = 100;

/** As `readYaml`, for files that may be large: valid JSON is parsed directly, and a large file must be JSON. */
export function readDocument<T>(text: string, file: string, schema: Schema<T>, check?: CrossCheck<T>): ReadDocument<T> {
  const json = readJson(text, schema, check);
  if (json.t === "ok") return json;
  if (text.length > maxYamlChars)
    return { t: "wrong", problems: [`${file}: ${json.is}, wanted JSON in order where there is more than 1 MiB`] };
  // The YAML reader finds the place of the fault.
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
      // Escaped, because keys and values of the document are quoted.
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

/** The first line of the parser's message; too deep a nesting is reported with the runtime's own error. */
const faultOf = (text: string): string =>
  text.startsWith("Maximum call stack") ? "it is nested too deep" : (text.split("\n", 1)[0] ?? "");

/** A YAML document: its plain value, and the offset of each part. */
class Tree {
  /** The fault because of which it has no plain value. */
  issue: Issue | undefined;
  readonly #doc: Document;
  /** The node of each alias, computed at the first alias. */
  #targets: ReadonlyMap<unknown, Node> | undefined;
  #aliases = 0;
  /** The pairs by key of maps with faults, indexed once because a map may have thousands of keys. */
  readonly #pairs = new Map<YAMLMap, ReadonlyMap<string, Pair>>();

  constructor(doc: Document) {
    this.#doc = doc;
  }

  plain(): unknown {
    return this.#plain(this.#doc.contents, []);
  }

  /** The offset in characters; for a missing key, that of its parent. */
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

/**
 * An alias stands for the last node before it with its anchor. One pass over the document; the library would make one
 * for each alias.
 */
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
