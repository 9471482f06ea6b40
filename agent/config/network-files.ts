import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { loadUnknownKeys } from "../../ipam/mod.ts";
import { maxStdinBytes } from "../../shared/cni/dispatch.ts";
import { ipamKind } from "../../shared/cni/ipam-kind.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { AgentConfig } from "./agent-config.ts";

/** The file names that runtimes read. */
const isNetworkFile = (name: string): boolean => /\.(conf|conflist|json)$/.test(name);

/**
 * Unknown keys in other files that decide about pods' addresses: the runtime's configurations with our `ipam` section,
 * and the networks' settings files. Unreadable files are reported when they are used.
 */
export async function strangeKeysBeside({ cni, dataDir, networks }: AgentConfig): Promise<readonly string[]> {
  const { unknownKeys, unknownKeysIn, unknownKeyText } = await loadUnknownKeys();
  const inFile = (path: string, keys: (document: Fields) => ReturnType<typeof unknownKeys>): readonly string[] => {
    const document = readDocument(path);
    return document === undefined ? [] : keys(document).map((key) => `${path}: ${unknownKeyText(key)}`);
  };
  return [
    ...filesIn(cni.confDir).flatMap((path) =>
      inFile(path, (document) => pluginsOf(document).filter(isOurs).flatMap(unknownKeys)),
    ),
    ...networks.flatMap(({ name }) => inFile(join(dataDir, `${name}.json`), unknownKeysIn)),
  ];
}

function filesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
      .filter(isNetworkFile)
      .sort()
      .map((name) => join(directory, name));
  } catch {
    return [];
  }
}

function readDocument(path: string): Fields | undefined {
  try {
    const found = statSync(path);
    return found.isFile() && found.size <= maxStdinBytes ? Fields.parse(readFileSync(path, "utf8")) : undefined;
  } catch {
    return undefined;
  }
}

function pluginsOf(document: Fields): readonly Fields[] {
  try {
    return document.objects("plugins") ?? [document];
  } catch {
    return [];
  }
}

function isOurs(plugin: Fields): boolean {
  try {
    return ipamKind(plugin) === "own";
  } catch {
    return false;
  }
}
