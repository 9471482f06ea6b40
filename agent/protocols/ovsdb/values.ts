import { isObject, show } from "../../../shared/schema/json-fields.ts";
import { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";

/** The identity of a row, as `550e8400-e29b-41d4-a716-446655440000`. Made by `parseUuid`, or read from the server. */
export type Uuid = string & { readonly brand: "Uuid" };

/** Stands for a row that the same transaction inserts (RFC 7047, section 5.1, `<named-uuid>`). */
export interface NamedUuid {
  readonly namedUuid: string;
}

/** What an atom is when it is read. */
export interface AtomTypes {
  readonly string: string;
  /** The server's has 64 bits: beyond 2^53 the last digits are lost. */
  readonly integer: number;
  readonly real: number;
  readonly boolean: boolean;
  readonly uuid: Uuid;
}

export type AtomName = keyof AtomTypes;
export type Atom = AtomTypes[AtomName];

/** What may be written where an atom is wanted. */
export type WritableAtom<K extends AtomName> = K extends "uuid" ? Uuid | NamedUuid : AtomTypes[K];

/** Received data that is no valid value of its column, or row of its table. */
export class MalformedValue extends Error {
  override readonly name = "MalformedValue";
}

const uuidForm = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function parseUuid(text: string): Uuid | undefined {
  return uuidForm.test(text) ? (text as Uuid) : undefined;
}

/** RFC 7047, section 5.1, `<atom>`. @throws {MalformedValue} */
export function decodeAtom(name: AtomName, json: unknown): Atom {
  switch (name) {
    case "string":
      if (typeof json === "string") return json;
      break;
    case "integer":
      if (Number.isInteger(json)) return json as number;
      break;
    case "real":
      if (typeof json === "number") return json;
      break;
    case "boolean":
      if (typeof json === "boolean") return json;
      break;
    case "uuid": {
      const uuid = Array.isArray(json) && json.length === 2 && json[0] === "uuid" ? uuidIn(json[1]) : undefined;
      if (uuid !== undefined) return uuid;
      break;
    }
  }
  throw new MalformedValue(`an atom is ${show(json)}, wanted ${name === "integer" ? "an" : "a"} ${name}`);
}

const uuidIn = (value: unknown): Uuid | undefined => (typeof value === "string" ? parseUuid(value) : undefined);

/** `<atom>` as it is sent. @throws {OvsdbError} `invalid`: the server ends a connection for a text that it cannot read */
export function encodeAtom(name: AtomName, value: unknown, where: string): unknown {
  const refusal = (wanted: string): OvsdbError => {
    const is = value === undefined ? "missing" : show(value);
    return new OvsdbError(OvsdbCode.invalid, `Cannot write a transaction: "${where}" is ${is}, wanted ${wanted}`);
  };
  switch (name) {
    case "string":
      if (typeof value !== "string") throw refusal("a string");
      if (value.includes("\0")) throw refusal("a string without the character U+0000");
      return value;
    case "integer":
      if (!Number.isSafeInteger(value)) throw refusal("an integer within 2^53");
      return value;
    case "real":
      if (!Number.isFinite(value)) throw refusal("a finite number");
      return value;
    case "boolean":
      if (typeof value !== "boolean") throw refusal("true or false");
      return value;
    case "uuid": {
      if (typeof value === "string" && parseUuid(value) !== undefined) return ["uuid", value];
      if (isObject(value) && typeof value["namedUuid"] === "string") return ["named-uuid", value["namedUuid"]];
      throw refusal("a UUID or a row that this transaction inserts");
    }
  }
}

/** The elements of a `<set>`: an atom alone is a set of one. @throws {MalformedValue} */
export function decodeSet(name: AtomName, json: unknown): ReadonlySet<Atom> {
  if (!Array.isArray(json) || json[0] !== "set") return new Set([decodeAtom(name, json)]);
  if (json.length !== 2 || !Array.isArray(json[1])) throw new MalformedValue(`a set is ${show(json)}`);
  return new Set(json[1].map((element: unknown) => decodeAtom(name, element)));
}

/** A `<map>`. @throws {MalformedValue} */
export function decodeMap(key: AtomName, value: AtomName, json: unknown): ReadonlyMap<Atom, Atom> {
  if (!Array.isArray(json) || json.length !== 2 || json[0] !== "map" || !Array.isArray(json[1]))
    throw new MalformedValue(`a map is ${show(json)}`);
  return new Map(
    json[1].map((pair: unknown) => {
      if (!Array.isArray(pair) || pair.length !== 2) throw new MalformedValue(`a map's pair is ${show(pair)}`);
      return [decodeAtom(key, pair[0]), decodeAtom(value, pair[1])] as const;
    }),
  );
}
