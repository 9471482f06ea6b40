import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { parse } from "yaml";
import { CniCode, CniError } from "../errors.ts";
import { isObject } from "../schema/json-fields.ts";
import type { ApiObject } from "./resource.ts";

/** A configuration of a few clusters is some kB; with certificates inline some 10. */
const maxFileChars = 4 * 1024 * 1024;

/** An entry and the folder of its file, which relative paths in it start from. */
export interface Entry {
  readonly value: ApiObject;
  readonly folder: string;
}

/** The merged content of kubeconfig files. If two define the same entry, the first counts. */
export interface Kubeconfig {
  readonly currentContext: string | undefined;
  readonly contexts: ReadonlyMap<string, Entry>;
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
  /** For messages. */
  readonly source: string;
}

/**
 * As kubectl finds them: the file that is named, else those of KUBECONFIG, of which some may be missing, else
 * `~/.kube/config`.
 * @throws {CniError} code 7
 */
export async function readKubeconfig(
  env: Readonly<Record<string, string | undefined>>,
  named?: string,
): Promise<Kubeconfig> {
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((path) => path !== "");
  const usual = listed.length > 0 ? listed : [join(env["HOME"] ?? homedir(), ".kube", "config")];
  const paths = named === undefined ? usual : [named];
  const texts = await Promise.all(paths.map((path) => textOf(path, named === undefined)));
  const files = paths.flatMap((path, i) => {
    const text = texts[i];
    return text === undefined ? [] : [{ path, text }];
  });
  if (files.length === 0)
    throw wrong(`there is no file ${quoted(paths)}, wanted --kubeconfig, KUBECONFIG or that file`);
  return mergeKubeconfigs(files);
}

/** @throws {CniError} code 7, which quotes only names from the files */
export function mergeKubeconfigs(files: readonly { readonly path: string; readonly text: string }[]): Kubeconfig {
  const documents = files.map(({ path, text }) => ({ folder: dirname(path), value: documentOf(path, text) }));
  const named = (list: string, entry: string): ReadonlyMap<string, Entry> => {
    const found = new Map<string, Entry>();
    for (const { folder, value } of documents)
      for (const item of Array.isArray(value[list]) ? value[list] : []) {
        const { name, [entry]: inner } = isObject(item) ? item : {};
        if (typeof name === "string" && isObject(inner) && !found.has(name)) found.set(name, { value: inner, folder });
      }
    return found;
  };
  const current = documents
    .map(({ value }) => value["current-context"])
    .find((name) => name !== undefined && name !== "");
  return {
    currentContext: typeof current === "string" ? current : undefined,
    contexts: named("contexts", "context"),
    clusters: named("clusters", "cluster"),
    users: named("users", "user"),
    source: quoted(files.map(({ path }) => path)),
  };
}

/** Relative paths in a file start at the file's folder. */
export const pathFrom = (folder: string, path: string): string => (isAbsolute(path) ? path : join(folder, path));

export const wrong = (is: string): CniError => new CniError(CniCode.invalidConfig, `Cannot use the kubeconfig: ${is}`);

function documentOf(path: string, text: string): ApiObject {
  if (text.length > maxFileChars) throw wrong(`"${path}" has more than ${maxFileChars} characters`);
  let value: unknown;
  try {
    value = parse(text, { maxAliasCount: 100 });
  } catch {
    // The parser's reason is left out, because it quotes a line, which may hold a key.
    throw wrong(`"${path}" is no YAML`);
  }
  if (value === null || value === undefined) return {};
  if (isObject(value)) return value;
  throw wrong(`"${path}" holds no mapping, wanted one with clusters, users and contexts`);
}

async function textOf(path: string, mayMiss: boolean): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (caught) {
    const { code } = caught as { readonly code?: unknown };
    if (mayMiss && code === "ENOENT") return undefined;
    throw wrong(`"${path}" cannot be read (${code})`);
  }
}

const quoted = (paths: readonly string[]): string => paths.map((path) => `"${path}"`).join(", ");
