/**
 * The schema of a document or record from outside, as data and in one place: types are inferred from it (`Infer`),
 * `validate` reads by it, and the JSON Schema in `conf/` and the tables in `docs/` are generated from it.
 * `docs/dependencies.md` says why no library is used.
 */
export type Schema<T = unknown> =
  | TextSchema<T>
  | IntegerSchema<T>
  | BooleanSchema<T>
  | ListSchema<T>
  | ObjectSchema<T>
  | VariantsSchema<T>
  | OpaqueSchema<T>;

interface Yields<T> {
  /** For the compiler only: what the value is once it has been read. */
  readonly yields?: () => T;
}

interface TextSchema<T> extends Yields<T> {
  readonly t: "text";
  /** Completes "wanted …". */
  readonly wanted: string;
  /** Answers nothing for an invalid text. */
  readonly parse: (text: string) => T | undefined;
  /** All valid texts, if there are only a few. */
  readonly oneOf?: readonly string[];
}

interface IntegerSchema<T> extends Yields<T> {
  readonly t: "integer";
  readonly min: number;
  readonly max: number;
}

interface BooleanSchema<T> extends Yields<T> {
  readonly t: "boolean";
}

interface ListSchema<T> extends Yields<T> {
  readonly t: "list";
  readonly of: Schema;
  readonly min: number;
  readonly max: number;
}

export interface ObjectSchema<T = unknown> extends Yields<T> {
  readonly t: "object";
  readonly keys: Keys;
  /** The keys once more as a list, which `validate` goes through for each of thousands of objects. */
  readonly entries: readonly (readonly [name: string, key: Key])[];
}

/** Objects whose key `by` says which other keys they have. */
export interface VariantsSchema<T = unknown> extends Yields<T> {
  readonly t: "variants";
  readonly by: string;
  /** Describes the key `by`, for documentation. */
  readonly about: string;
  readonly variants: Readonly<Record<string, ObjectSchema>>;
  /** Every key that any of them has. */
  readonly all: Keys;
}

/** An object that is passed on without knowing its keys. */
interface OpaqueSchema<T> extends Yields<T> {
  readonly t: "opaque";
  readonly wanted: string;
  /** Answers what is wrong with it, or nothing; "$" stands for its path. */
  readonly fault: (value: object) => string | undefined;
}

/** One key of an object. */
export interface Key<T = unknown, P extends Presence = Presence> {
  readonly of: Schema<T>;
  readonly presence: P;
  /** Describes the key, for people who write the document. */
  readonly about: string;
  /** The default of a `defaulted` key. */
  readonly fallback?: T;
  /** The default in words, if it depends on something. */
  readonly otherwise?: string;
}

type Presence = "required" | "optional" | "defaulted";
export type Keys = Readonly<Record<string, Key>>;

/** The type of the values that a schema accepts. */
export type Infer<S> = S extends Yields<infer T> ? T : never;

type NamesOf<K extends Keys, P extends Presence> = {
  [N in keyof K]: K[N]["presence"] extends P ? N : never;
}[keyof K];

type ObjectOf<K extends Keys> = Flat<
  { readonly [N in NamesOf<K, "required" | "defaulted">]: Infer<K[N]["of"]> } & {
    readonly [N in NamesOf<K, "optional">]?: Infer<K[N]["of"]>;
  }
>;

type VariantsOf<By extends string, V extends Readonly<Record<string, ObjectSchema>>> = {
  [N in keyof V]: Flat<{ readonly [B in By]: N } & Infer<V[N]>>;
}[keyof V];

/** Shows an intersection as one object. */
type Flat<T> = { readonly [K in keyof T]: T[K] };

/** @param parse answers nothing for an invalid text. @param wanted completes "wanted …" */
export const text = <T>(wanted: string, parse: (text: string) => T | undefined): Schema<T> => ({
  t: "text",
  wanted,
  parse,
});

/** A text that is kept as it is. @param isRight whether the text is valid */
export const textThat = (wanted: string, isRight: (text: string) => boolean): Schema<string> =>
  text(wanted, (given) => (isRight(given) ? given : undefined));

export const anyText: Schema<string> = textThat("a text", () => true);

export const oneOf = <const T extends string>(values: readonly T[]): Schema<T> => ({
  t: "text",
  wanted: `one of ${values.map((value) => `"${value}"`).join(", ")}`,
  parse: (given) => values.find((value) => value === given),
  oneOf: values,
});

export const integer = (min: number, max: number): Schema<number> => ({ t: "integer", min, max });

export const boolean: Schema<boolean> = { t: "boolean" };

export const list = <T>(of: Schema<T>, min: number, max: number): Schema<readonly T[]> => ({ t: "list", of, min, max });

export const object = <const K extends Keys>(keys: K): ObjectSchema<ObjectOf<K>> => ({
  t: "object",
  keys,
  entries: Object.entries(keys),
});

export const variants = <const By extends string, const V extends Readonly<Record<string, ObjectSchema>>>(
  by: By,
  about: string,
  of: V,
): VariantsSchema<VariantsOf<By, V>> => ({
  t: "variants",
  by,
  about,
  variants: of,
  all: {
    [by]: required(oneOf(Object.keys(of)), about),
    ...Object.assign({}, ...Object.values(of).map(({ keys }) => keys)),
  },
});

export const opaque = <T extends object = Readonly<Record<string, unknown>>>(
  wanted: string,
  fault: (value: object) => string | undefined,
): Schema<T> => ({ t: "opaque", wanted, fault });

export const required = <T>(of: Schema<T>, about = ""): Key<T, "required"> => ({ of, presence: "required", about });

/** @param otherwise what is done where the key is absent */
export const optional = <T>(of: Schema<T>, about = "", otherwise?: string): Key<T, "optional"> => ({
  of,
  presence: "optional",
  about,
  ...(otherwise === undefined ? {} : { otherwise }),
});

/** @param otherwise the fallback in words, where it is no plain value or depends on something */
export const defaulted = <T>(
  of: Schema<T>,
  fallback: NoInfer<T>,
  about = "",
  otherwise?: string,
): Key<T, "defaulted"> => ({
  of,
  presence: "defaulted",
  about,
  fallback,
  ...(otherwise === undefined ? {} : { otherwise }),
});

/** The value of an omitted object without required keys. */
export const defaultsOf = <T>(of: ObjectSchema<T>): T =>
  Object.fromEntries(
    of.entries.flatMap(([name, { presence, fallback }]) => (presence === "defaulted" ? [[name, fallback]] : [])),
  ) as T;

/** An object that may be left out, since each of its keys may. */
export const section = <T>(of: ObjectSchema<T>, about: string): Key<T, "defaulted"> =>
  defaulted(of, defaultsOf(of), about, "");

/** Every key by its path without indexes: `networks.subnets`. Lists stand for their entries. */
export function keysOf(schema: Schema, path = ""): string[] {
  if (schema.t === "list") return keysOf(schema.of, path);
  if (schema.t !== "object" && schema.t !== "variants") return [];
  return Object.entries(schema.t === "object" ? schema.keys : schema.all).flatMap(([name, { of }]) => {
    const at = path === "" ? name : `${path}.${name}`;
    return [at, ...keysOf(of, at)];
  });
}
