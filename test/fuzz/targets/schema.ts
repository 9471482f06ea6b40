import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { isObject } from "../../../shared/schema/json-fields.ts";

const text = readFileSync(new URL("../../../conf/ipam.schema.json", import.meta.url), "utf8");
const schema: unknown = JSON.parse(text);
const validate = new Ajv2020({ strict: true, strictRequired: false }).compile(schema as object);
const known = new Set([...text.matchAll(/"([A-Za-z.]+)": *\{/g)].map((match) => match[1] ?? ""));
const lower = new Set([...known].map((key) => key.toLowerCase()));

/** What the parser takes of JSON and a schema cannot say: `null` for absent, and keys in any case. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== null);
  return Object.fromEntries(entries.map(([key, inner]) => [key, plain(inner)]));
}

function spelledOtherwise(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return Object.entries(value).some(
    ([key, inner]) => (!known.has(key) && lower.has(key.toLowerCase())) || spelledOtherwise(inner),
  );
}

/** @throws where the parser has taken a configuration that `conf/ipam.schema.json` refuses */
export function requireSchema(configuration: unknown): void {
  if (spelledOtherwise(configuration) || validate(plain(configuration))) return;
  const [error] = validate.errors ?? [];
  throw new Error(`A configuration was taken that the schema refuses: ${error?.instancePath} ${error?.message}`);
}
