import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { nodeFileSchema } from "../agent/cluster/static/node-file.ts";
import { agentSchema } from "../agent/config/agent-config.ts";
import { agentMetrics } from "../agent/metrics/agent-metrics.ts";
import { serviceFileSchema } from "../agent/services/mod.ts";
import { controllerMetrics } from "../controller/controller-metrics.ts";
import { bundleIndexSchema, clusterDocuments, nodeDocuments, reportDocuments } from "../shared/documents/mod.ts";
import type { Definitions } from "../shared/metrics/mod.ts";
import type { Key, Keys, ObjectSchema, Schema } from "../shared/schema/schema.ts";

/**
 * `npm run documents`: writes what is made of the schemas of the documents that people write: a JSON Schema for editors
 * in `conf/`, and the table of their keys in `docs/configuration.md`. And the tables of what is measured, in `docs/metrics.md`.
 */

const root = new URL("../", import.meta.url);

interface DocumentKind {
  readonly name: "agent" | "nodes" | "services";
  readonly title: string;
  readonly schema: ObjectSchema;
}

const kinds: readonly DocumentKind[] = [
  { name: "agent", title: "agent.yaml, the configuration of Pipette's node agent", schema: agentSchema },
  { name: "nodes", title: "a file of nodes, of a registry of type static", schema: nodeFileSchema },
  { name: "services", title: "a file of services (services.file)", schema: serviceFileSchema },
];

/** What Pipette says, for those who read it: later releases may say more. */
const spoken: Readonly<Record<string, { readonly schema: ObjectSchema; readonly title: string }>> = {
  ...nodeDocuments,
  ...clusterDocuments,
  ...reportDocuments,
  bundle: { schema: bundleIndexSchema, title: "the index of a support bundle" },
};

const measured: Readonly<Record<string, Definitions>> = { agent: agentMetrics, controller: controllerMetrics };

export interface Generated {
  readonly path: string;
  readonly text: string;
}

/** Every file that is made of schemas, as it should be. */
export function generated(): readonly Generated[] {
  const page = fileURLToPath(new URL("docs/configuration.md", root));
  const schemas = [
    ...kinds.map(({ name, title, schema }) => schemaFile(`conf/${name}.schema.json`, title, jsonSchemaOf(schema))),
    ...Object.entries(spoken).map(([name, { title, schema }]) =>
      schemaFile(`conf/documents/${name}.schema.json`, title, open(jsonSchemaOf(schema))),
    ),
  ];
  const text = kinds.reduce((all, kind) => withKeys(all, kind), readFileSync(page, "utf8"));
  const numbers = fileURLToPath(new URL("docs/metrics.md", root));
  const all = Object.entries(measured).reduce(withMetrics, readFileSync(numbers, "utf8"));
  return [...schemas, { path: page, text }, { path: numbers, text: all }];
}

const schemaFile = (path: string, title: string, schema: object): Generated => ({
  path: fileURLToPath(new URL(path, root)),
  text: `${JSON.stringify({ $schema: "https://json-schema.org/draft/2020-12/schema", title, ...schema }, null, 2)}\n`,
});

/** The same with room for keys that it does not know. */
const open = (schema: object): object =>
  JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === "additionalProperties" ? undefined : value)));

const withKeys = (page: string, { name, schema }: DocumentKind): string =>
  withTable(page, `keys of ${name}`, ["key", "values", "default", "what"], rowsOf(schema.keys, ""));

function withMetrics(page: string, [name, definitions]: [string, Definitions]): string {
  const rows = Object.entries(definitions).map(([metric, { kind, labels, help }]) => [
    `\`${metric}\``,
    kind,
    labels.map((label) => `\`${label}\``).join(", "),
    help,
  ]);
  return withTable(page, `metrics of ${name}`, ["name", "type", "labels", "what"], rows);
}

/** The page with this table between the two comments that name it. */
function withTable(
  page: string,
  name: string,
  heads: readonly string[],
  table: readonly (readonly string[])[],
): string {
  const [start, end] = [`<!-- ${name}: made by "npm run documents" -->`, `<!-- end of ${name} -->`];
  const [before, rest] = page.split(start);
  const after = rest?.split(end)[1];
  if (before === undefined || after === undefined) throw new Error(`no page has "${start}" … "${end}"`);
  const rows = table.map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`);
  const lines = [`| ${heads.join(" | ")} |`, `|${"---|".repeat(heads.length)}`, ...rows];
  return [before, start, "\n\n", lines.join("\n"), "\n\n", end, after].join("");
}

const code = (text: string): string => `\`${text}\``;

function rowsOf(keys: Keys, path: string, only = ""): string[][] {
  return Object.entries(keys).flatMap(([name, key]) => {
    const at = path === "" ? name : `${path}.${name}`;
    const what = `${only === "" ? "" : `${only}: `}${key.about}`;
    return [[code(at), valuesOf(key.of), defaultOf(key), what], ...innerRows(key.of, at)];
  });
}

function innerRows(of: Schema, at: string): string[][] {
  if (of.t === "list") return innerRows(of.of, `${at}[]`);
  if (of.t === "object") return rowsOf(of.keys, at);
  if (of.t !== "variants") return [];
  const kinds = Object.entries(of.variants);
  return [
    ...rowsOf({ [of.by]: of.all[of.by]! }, at),
    ...kinds.flatMap(([kind, { keys }]) => rowsOf(keys, at, code(kind))),
  ];
}

function valuesOf(of: Schema): string {
  switch (of.t) {
    case "text":
      return (of.oneOf ?? []).map(code).join(", ");
    case "integer":
      return `${of.min} to ${of.max}`;
    case "boolean":
      return "`true`, `false`";
    case "list": {
      const inner = valuesOf(of.of);
      return `list of ${of.min} to ${of.max}${inner === "" ? "" : `: ${inner}`}`;
    }
    default:
      return "";
  }
}

const defaultOf = ({ presence, fallback, otherwise }: Key): string =>
  otherwise ?? (presence === "required" ? "needed" : presence === "optional" ? "none" : code(JSON.stringify(fallback)));

/** The parser refuses everything that the JSON Schema refuses, and more. */
function jsonSchemaOf(of: Schema): Record<string, unknown> {
  switch (of.t) {
    case "text":
      return of.oneOf === undefined ? { type: "string", description: `Wanted: ${of.wanted}` } : { enum: of.oneOf };
    case "integer":
      return { type: "integer", minimum: of.min, maximum: of.max };
    case "boolean":
      return { type: "boolean" };
    case "list":
      return { type: "array", minItems: of.min, maxItems: of.max, items: jsonSchemaOf(of.of) };
    case "opaque":
      return { type: "object", description: `Wanted: ${of.wanted}` };
    case "object":
      return objectSchemaOf(of.keys);
    case "variants":
      return {
        type: "object",
        required: [of.by],
        oneOf: Object.entries(of.variants).map(([kind, { keys }]) =>
          objectSchemaOf(keys, { [of.by]: { const: kind, description: of.about } }),
        ),
      };
  }
}

function objectSchemaOf(keys: Keys, more: Record<string, unknown> = {}): Record<string, unknown> {
  const properties = Object.entries(keys).map(([name, key]) => [name, propertyOf(key)]);
  const required = Object.keys(keys).filter((name) => keys[name]?.presence === "required");
  return {
    type: "object",
    properties: { ...more, ...Object.fromEntries(properties) },
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

function propertyOf(key: Key): Record<string, unknown> {
  const of = jsonSchemaOf(key.of);
  const said = [key.about, of["description"], key.otherwise && `Default: ${key.otherwise}`].filter(Boolean).join(". ");
  const plain = key.presence === "defaulted" && key.otherwise === undefined;
  return { ...of, description: said.replaceAll("`", '"'), ...(plain ? { default: key.fallback } : {}) };
}

if (import.meta.main) for (const { path, text } of generated()) writeFileSync(path, text);
