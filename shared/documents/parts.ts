import { anyText, integer, type Key, list, oneOf, required, type Schema, textThat } from "../schema/mod.ts";

/** The parts that documents are made of, with their bounds. */

/** The shape of every document. A reader refuses another one, and ignores keys that it does not know. */
export const documentVersion = 1;

/** Rows of one list: what a person or a page can take in, and at 700 bytes a row less than the largest answer. */
export const maxRows = 5_000;
/** Values in one cell of a row: addresses of a pod, policies that select it. */
export const maxValues = 1_000;
/** A sentence of an agent; its own errors end far below. */
export const maxTextChars = 8 * 1024;

export const sentence: Schema<string> = textThat(
  `a text of at most ${maxTextChars} characters`,
  (text) => text.length <= maxTextChars,
);

/** The name of a node, as the API server takes it, or a host without one has it; also a folder of a bundle. */
export const nodeName: Schema<string> = textThat("the name of a node: 1 to 253 of a-z, 0-9, -, _ and .", isNodeName);

/** Letter by letter, because names come from outside, and are long where somebody is hostile. */
export function isNodeName(text: string): boolean {
  if (text.length === 0 || text.length > 253 || text.includes("..")) return false;
  if (text.startsWith(".") || text.startsWith("-") || text.endsWith(".")) return false;
  for (let i = 0; i < text.length; i++)
    if (!"abcdefghijklmnopqrstuvwxyz0123456789-_.".includes(text[i] ?? "")) return false;
  return true;
}

/** A count, a time in milliseconds since 1970, a number of bytes. */
export const count: Schema<number> = integer(0, Number.MAX_SAFE_INTEGER);

/** A count that may be larger than a double can hold: addresses of an IPv6 network. */
export const digits: Schema<string> = textThat("digits", isDigits);

function isDigits(text: string): boolean {
  if (text.length === 0 || text.length > 40) return false;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 0x30 || text.charCodeAt(i) > 0x39) return false;
  return true;
}

export const rows = <T>(of: Schema<T>): Schema<readonly T[]> => list(of, 0, maxRows);

export const values = <T>(of: Schema<T>): Schema<readonly T[]> => list(of, 0, maxValues);

export const sentences: Schema<readonly string[]> = values(sentence);

/** The keys that every document of a node has. */
export const headOf = <const K extends string>(kind: K) =>
  ({
    kind: required(oneOf([kind]), "what the document is about"),
    version: required(integer(documentVersion, documentVersion), "of the document's shape"),
    node: required(nodeName, "the node that it is about"),
  }) as const;

/** How many rows were left out, since a document is bounded. */
export const omitted: Key<number, "required"> = required(count, "rows that were left out, because there are too many");

/** Of an attachment. */
export const attachmentKeys = {
  network: required(sentence, "its network"),
  containerId: required(anyText, "the sandbox"),
  ifname: required(anyText, "the interface's name in the pod"),
} as const;
