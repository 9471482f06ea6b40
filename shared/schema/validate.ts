import { isObject, show } from "./json-fields.ts";
import { didYouMean } from "./near.ts";
import type { Keys, ObjectSchema, Schema, VariantsSchema } from "./schema.ts";

/** Where in a document: names of keys, and places in lists. */
export type Path = readonly (string | number)[];

/** One fault, and the sentence about it: `"networks[0].mtu" is 1, wanted …`. */
export interface Issue {
  readonly path: Path;
  readonly text: string;
  /** The key is wrong, not its value. */
  readonly isKey?: boolean;
}

export type Validated<T> =
  | { readonly t: "ok"; readonly value: T }
  | { readonly t: "wrong"; readonly issues: readonly Issue[] };

export interface ValidateOptions {
  /** "ignored" for records of other releases, which may have more keys; absent: unknown keys are refused. */
  readonly unknownKeys?: "refused" | "ignored";
  /** "ignored": an optional key with an invalid value counts as absent. By default it is an issue. */
  readonly wrongOptional?: "refused" | "ignored";
  /** Stops after this many issues; absent: finds all. */
  readonly maxIssues?: number;
}

/** Reads a plain value: texts are parsed, defaults are filled in, and faults are listed with their paths. */
export function validate<T>(schema: Schema<T>, value: unknown, options: ValidateOptions = {}): Validated<T> {
  const reader = new Reader(options);
  // An empty document counts as an object without keys.
  const read = reader.read(schema, value ?? {});
  return reader.issues.length === 0 ? { t: "ok", value: read as T } : { t: "wrong", issues: reader.issues };
}

/** Collects contradictions in a document whose single values are valid. */
export class Findings {
  readonly issues: Issue[] = [];
  readonly #document: unknown;

  /** @param document as it was written */
  constructor(document: unknown) {
    this.#document = document;
  }

  /** @param is completes `"path" is …` */
  add(path: Path, is: string): void {
    this.issues.push({ path, text: `${nameOf(path)} is ${is}` });
  }

  /** The text or number at this path, as the document has it. */
  written(path: Path): string {
    const value = path.reduce<unknown>(
      (at, key) => (at as Record<string | number, unknown> | undefined)?.[key],
      this.#document,
    );
    return typeof value === "string" ? `"${value}"` : String(value);
  }
}

/** As people write a path: `networks[0].mtu`. */
const textOf = (path: Path): string =>
  path.reduce<string>((at, key) => (typeof key === "number" ? `${at}[${key}]` : at === "" ? key : `${at}.${key}`), "");

export const nameOf = (path: Path): string => (path.length === 0 ? "the document" : `"${textOf(path)}"`);

class Reader {
  readonly issues: Issue[] = [];
  readonly #ignoresUnknown: boolean;
  readonly #ignoresWrongOptional: boolean;
  readonly #maxIssues: number;
  /** The path of the value that is being read; one mutable list, since most values have no fault. */
  readonly #path: (string | number)[] = [];

  constructor({ unknownKeys, wrongOptional, maxIssues = Number.POSITIVE_INFINITY }: ValidateOptions) {
    this.#ignoresUnknown = unknownKeys === "ignored";
    this.#ignoresWrongOptional = wrongOptional === "ignored";
    this.#maxIssues = maxIssues;
  }

  read(schema: Schema, value: unknown): unknown {
    switch (schema.t) {
      case "text":
        return (typeof value === "string" ? schema.parse(value) : undefined) ?? this.#refuse(value, schema.wanted);
      case "integer": {
        const fits = Number.isSafeInteger(value) && Number(value) >= schema.min && Number(value) <= schema.max;
        return fits ? value : this.#refuse(value, `a whole number from ${schema.min} to ${schema.max}`);
      }
      case "boolean":
        return typeof value === "boolean" ? value : this.#refuse(value, "true or false");
      case "list":
        if (!Array.isArray(value) || value.length < schema.min || value.length > schema.max)
          return this.#refuse(value, `a list of ${schema.min} to ${schema.max} entries`);
        return this.#list(schema.of, value);
      case "opaque": {
        if (!isObject(value)) return this.#refuse(value, schema.wanted);
        const fault = schema.fault(value);
        if (fault !== undefined) this.#say(`${fault.replace("$", () => textOf(this.#path))}, wanted ${schema.wanted}`);
        return value;
      }
      case "object":
        if (!isObject(value)) return this.#refuse(value, aMapWith(schema.keys));
        return this.#object(schema, value);
      case "variants":
        if (!isObject(value)) return this.#refuse(value, aMapWith(schema.all));
        return this.#variants(schema, value);
    }
  }

  #list(of: Schema, values: readonly unknown[]): unknown[] {
    const read: unknown[] = [];
    for (let i = 0; i < values.length && this.issues.length < this.#maxIssues; i++)
      read.push(this.#inner(i, of, values[i]));
    return read;
  }

  #object({ keys, entries }: ObjectSchema, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const read: Record<string, unknown> = {};
    let known = 0;
    for (const [name, { of, presence, fallback }] of entries) {
      if (Object.hasOwn(value, name)) {
        known++;
        const { length } = this.issues;
        const inner = this.#inner(name, of, value[name]);
        if (this.issues.length === length || !this.#ignoresWrongOptional || presence === "required") {
          read[name] = inner;
          continue;
        }
        this.issues.length = length;
      }
      if (presence === "defaulted") read[name] = fallback;
      else if (presence === "required") this.#missing(name);
    }
    if (!this.#ignoresUnknown && Object.keys(value).length > known)
      for (const name of Object.keys(value)) if (!Object.hasOwn(keys, name)) this.#unknown(name, keys);
    return read;
  }

  #variants(schema: VariantsSchema, value: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const { by, all } = schema;
    const kind = Object.hasOwn(value, by) ? this.#inner(by, all[by]!.of, value[by]) : this.#missing(by);
    const keys = typeof kind === "string" ? schema.variants[kind]!.keys : all;
    const read: Record<string, unknown> = { [by]: kind };
    for (const [name, given] of Object.entries(value)) {
      const key = Object.hasOwn(all, name) ? all[name] : undefined;
      if (name === by) continue;
      if (key === undefined) this.#unknown(name, all);
      else read[name] = this.#inner(name, keys[name]?.of ?? key.of, given);
      if (key !== undefined && !Object.hasOwn(keys, name))
        this.#say(`${nameOf([...this.#path, name])} is set, wanted it left out where "${by}" is "${kind}"`, name);
    }
    for (const [name, { presence, fallback }] of keys === all ? [] : Object.entries(keys)) {
      if (Object.hasOwn(value, name)) continue;
      if (presence === "defaulted") read[name] = fallback;
      if (presence === "required")
        this.#say(`${nameOf(this.#path)} is without "${name}", wanted it where "${by}" is "${kind}"`);
    }
    return read;
  }

  #inner(key: string | number, of: Schema, value: unknown): unknown {
    this.#path.push(key);
    const read = this.read(of, value);
    this.#path.pop();
    return read;
  }

  #missing(name: string): undefined {
    this.#say(`${nameOf([...this.#path, name])} is missing`);
  }

  #unknown(name: string, keys: Keys): void {
    const known = Object.keys(keys);
    const text = `${nameOf([...this.#path, name])} is an unknown key${didYouMean(name, known)}`;
    this.issues.push({ path: [...this.#path, name], text: `${text}, wanted one of ${known.join(", ")}`, isKey: true });
  }

  #refuse(value: unknown, wanted: string): undefined {
    this.#say(`${nameOf(this.#path)} is ${describe(value)}, wanted ${wanted}`);
  }

  /** @param name the key that the issue is about, if it is about a key of this object */
  #say(text: string, name?: string): void {
    this.issues.push({ path: name === undefined ? [...this.#path] : [...this.#path, name], text });
  }
}

const aMapWith = (keys: Keys): string => `a map with the keys ${Object.keys(keys).join(", ")}`;

function describe(value: unknown): string {
  if (value === null || value === undefined) return "empty";
  if (Array.isArray(value)) return `a list of ${value.length} entries`;
  return isObject(value) ? "a map" : show(value);
}
