import { paths } from "../../shared/os/paths.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { readTrusted } from "./settings-file.ts";
import { type StrangeKey, strangeKeysIn } from "./strange-keys.ts";

/** The keys that nobody reads in a network's settings file, and its path; for checks, which a plugin does not load. */
export async function strangeKeysOfSettings(
  dataDir: string,
  network: string,
): Promise<{ readonly path: string; readonly keys: readonly StrangeKey[] }> {
  const path = `${dataDir}${paths.directorySeparator}${network}.json`;
  const bytes = await readTrusted(path);
  if (bytes === undefined) return { path, keys: [] };
  return { path, keys: strangeKeysIn(Fields.parse(new TextDecoder().decode(bytes), `settings file "${path}"`)) };
}
