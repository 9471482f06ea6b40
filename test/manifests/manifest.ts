import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";

/** An object of Kubernetes as it stands in a file; what it holds is the reader's to know. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own
  readonly [key: string]: any;
}

/** YAML 1.1, as Kubernetes reads it. @throws {Error} where a reader would have to guess at anything */
export function objectsIn(text: string): readonly Manifest[] {
  return parseAllDocuments(text, { version: "1.1" }).flatMap((document) => {
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined) throw problem;
    const object = document.toJS() as Manifest | null;
    return object === null ? [] : [object];
  });
}

/** The objects of a plain file of conf/kubernetes. */
export const plainObjects = (name = "pipette.yaml"): readonly Manifest[] =>
  objectsIn(readFileSync(new URL(`../../conf/kubernetes/${name}`, import.meta.url), "utf8"));

/** The one object of that kind and name. */
export function object(objects: readonly Manifest[], kind: string, name: string): Manifest {
  const found = objects.filter((each) => each.kind === kind && each.metadata.name === name);
  const [only] = found;
  if (only === undefined || found.length > 1)
    throw new Error(`${found.length} objects are ${kind} "${name}", wanted one`);
  return only;
}

/** Where objects of such a kind are made. */
export function pathOf({ apiVersion, kind, metadata: { namespace } }: Manifest): string {
  const root = apiVersion === "v1" ? "/api/v1" : `/apis/${apiVersion}`;
  const plural = kind.endsWith("y") ? `${kind.slice(0, -1)}ies` : `${kind}s`;
  return `${root}${namespace === undefined ? "" : `/namespaces/${namespace}`}/${plural.toLowerCase()}`;
}
