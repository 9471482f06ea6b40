import { type Compare, CompareTarget, type KeyValue, type RangeRequest, type RequestOp } from "./messages.ts";

/** The parts of a transaction. */

/** Holds where the key was last changed at this revision; 0: where it is not there. */
export const unchanged = (key: string, modRevision: number): Compare => ({
  target: CompareTarget.modRevision,
  key,
  modRevision,
});

export const absent = (key: string): Compare => unchanged(key, 0);

const everything = { rangeEnd: "", limit: 0, revision: 0, keysOnly: false };

export const get = (key: string): RequestOp => ({ range: { ...everything, key } });

/** All keys that begin so. */
export const getAll = (prefix: string, options: { readonly keysOnly?: boolean } = {}): RequestOp => ({
  range: { ...everything, key: prefix, rangeEnd: endOf(prefix), ...options },
});

/** At most `limit` keys from `from` on that begin with `prefix`, as they were at a revision (0: now). */
export const page = (prefix: string, from: string, limit: number, revision: number): RangeRequest => ({
  ...everything,
  key: from,
  rangeEnd: endOf(prefix),
  limit,
  revision,
});

export const put = (key: string, value: string, lease = 0): RequestOp => ({ put: { key, value, lease } });

export const remove = (key: string): RequestOp => ({ deleteRange: { key } });

/** The first key behind all that begin with the prefix, which ends in an ASCII character. */
export const endOf = (prefix: string): string =>
  prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);

const decoder = new TextDecoder();

export const keyOf = (kv: Pick<KeyValue, "key">): string => decoder.decode(kv.key);
export const textOf = (kv: Pick<KeyValue, "value">): string => decoder.decode(kv.value);
