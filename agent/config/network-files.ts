import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { loadStrangeKeys } from "../../ipam/mod.ts";
import { ipamKind } from "../../shared/cni/ipam-kind.ts";
import { limits } from "../../shared/limits.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { AgentConfig } from "./agent-config.ts";

/** What runtimes read, as their library has it. */
const isNetworkFile = (name: string): boolean => /\.(conf|conflist|json)$/.test(name);

/**
 * Keys that nobody reads in files beside agent.yaml that say which addresses pods get: the runtime's configurations
 * with an `ipam` section of ours, and the networks' settings files. What cannot be read says so when it is used.
 */
export async function strangeKeysBeside({ cni, dataDir, networks }: AgentConfig): Promise<readonly string[]> {
  const { strangeKeys, strangeKeysIn, strangeKeyText } = await loadStrangeKeys();
  const inFile = (path: string, keys: (document: Fields) => ReturnType<typeof strangeKeys>): readonly string[] => {
    const document = readDocument(path);
    return document === undefined ? [] : keys(document).map((key) => `${path}: ${strangeKeyText(key)}`);
  };
  return [
    ...filesIn(cni.confDir).flatMap((path) =>
      inFile(path, (document) => pluginsOf(document).filter(isOurs).flatMap(strangeKeys)),
    ),
    ...networks.flatMap(({ name }) => inFile(join(dataDir, `${name}.json`), strangeKeysIn)),
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
    return found.isFile() && found.size <= limits.stdinBytes ? Fields.parse(readFileSync(path, "utf8")) : undefined;
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
