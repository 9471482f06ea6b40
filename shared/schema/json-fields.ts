import { CniCode, CniError } from "../errors.ts";
import { brief, printable } from "../printable.ts";
import { reasonOf } from "../reason.ts";
import { parseJson } from "./json.ts";

/**
 * Typed access to one JSON object that came from outside.
 *
 * Keys match in any case, as Go's decoder does it: containerd sends `HostPort`, podman `hostPort`.
 * `null` counts as absent. Every error names the field by its whole path, the value, and what was wanted.
 */
export class Fields {
  /** Path of this object in the document, `""` for the document itself. */
  readonly path: string;
  /** The object as it was parsed, for passing it on unchanged. */
  readonly raw: Readonly<Record<string, unknown>>;
  readonly #what: string;
  readonly #code: number;

  constructor(
    raw: Readonly<Record<string, unknown>>,
    path = "",
    what = "network configuration",
    code: number = CniCode.invalidConfig,
  ) {
    this.raw = raw;
    this.path = path;
    this.#what = what;
    this.#code = code;
  }

  /** Reads a whole document: valid JSON (else code 6) that holds an object (else this reader's code). */
  static parse(text: string, what = "network configuration", code: number = CniCode.invalidConfig): Fields {
    let value: unknown;
    try {
      value = parseJson(text);
    } catch (cause) {
      const reason = text.trim() === "" ? "it is empty" : withoutQuote(reasonOf(cause));
      throw new CniError(CniCode.decode, `Cannot read the ${what}: ${reason}, wanted one JSON object`, { cause });
    }
    if (!isObject(value))
      throw new CniError(CniCode.decode, `Cannot read the ${what}: it is ${kindOf(value)}, wanted one JSON object`);
    return new Fields(value, "", what, code);
  }

  /** The value of `key` in any case; an exact match wins over others. `null` becomes `undefined`. */
  get(key: string): unknown {
    const exact = Object.hasOwn(this.raw, key) ? this.raw[key] : undefined;
    if (exact !== undefined) return exact ?? undefined;
    const lower = key.toLowerCase();
    for (const name of Object.keys(this.raw)) {
      if (name.toLowerCase() === lower) return this.raw[name] ?? undefined;
    }
    return undefined;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  string(key: string): string | undefined {
    const value = this.get(key);
    if (value === undefined || typeof value === "string") return value;
    throw this.wrong(key, value, "a string");
  }

  boolean(key: string): boolean | undefined {
    const value = this.get(key);
    if (value === undefined || typeof value === "boolean") return value;
    throw this.wrong(key, value, "true or false");
  }

  integer(key: string, least: number, most: number): number | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return value;
    throw this.wrong(key, value, `a whole number from ${least} to ${most}`);
  }

  object(key: string): Fields | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    if (!isObject(value)) throw this.wrong(key, value, "an object");
    return this.at(value, this.pathOf(key));
  }

  /** Each element goes through `read` with its own path, `key[0]`, for the error. */
  array<T>(key: string, read: (value: unknown, path: string) => T): T[] | undefined {
    const value = this.get(key);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) throw this.wrong(key, value, "an array");
    return value.map((element, i) => read(element, `${this.pathOf(key)}[${i}]`));
  }

  strings(key: string): string[] | undefined {
    return this.array(key, (value, path) => {
      if (typeof value !== "string") throw this.wrongAt(path, value, "a string");
      return value;
    });
  }

  objects(key: string): Fields[] | undefined {
    return this.array(key, (value, path) => {
      if (!isObject(value)) throw this.wrongAt(path, value, "an object");
      return this.at(value, path);
    });
  }

  /** Another object of the same document. */
  at(raw: Readonly<Record<string, unknown>>, path: string): Fields {
    return new Fields(raw, path, this.#what, this.#code);
  }

  /** What `read` makes of this object. It must depend on nothing else: others may keep it. */
  derive<T>(read: (fields: Fields) => T): T {
    return read(this);
  }

  pathOf(key: string): string {
    return this.path === "" ? key : `${this.path}.${key}`;
  }

  /** The error for a key of this object with an invalid value. */
  wrong(key: string, value: unknown, wanted: string): CniError {
    return this.wrongAt(this.pathOf(key), value, wanted);
  }

  wrongAt(path: string, value: unknown, wanted: string): CniError {
    // An object or a list is not quoted, because it may hold a secret.
    const holds = typeof value === "object" && value !== null && Object.keys(value).length > 0;
    const is = holds ? kindOf(value) : show(value);
    return this.refused(path, value === undefined ? "missing" : is, wanted);
  }

  /** As `wrongAt`, with a description in place of the value. */
  refused(path: string, is: string, wanted: string): CniError {
    return new CniError(this.#code, `Cannot read the ${this.#what}: "${path}" is ${is}, wanted ${wanted}`);
  }
}

/** Cuts the parser's reason before the text that it quotes, which may be a secret. */
function withoutQuote(text: string): string {
  const quote = text.indexOf('"');
  return quote < 0 ? text : text.slice(0, quote).trimEnd();
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * A value for an error message: JSON, shortened and escaped, so that hostile input cannot fill the log or control a
 * terminal.
 */
export function show(value: unknown): string {
  return brief(printable(jsonOf(value)), 80);
}

function jsonOf(value: unknown): string {
  // The beginning of a text is enough, and cheaper to escape.
  return JSON.stringify(typeof value === "string" ? value.slice(0, 80) : value) ?? String(value);
}
