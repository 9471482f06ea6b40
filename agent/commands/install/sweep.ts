import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { failed } from "./executable-file.ts";
import { isLeftover, isSetAside, removeFile } from "./place-file.ts";
import type { Step } from "./step.ts";

/**
 * What removes the unfinished files that killed runs have left beside `path`, and executables set aside that nobody
 * runs any more. Only for the holder of the installation's lock.
 * @param expected whether there may be more once the steps before it are done
 */
export async function planSweep(path: string, expected = false): Promise<readonly Step[]> {
  if (!expected && (await leftoversOf(path)).length === 0) return [];
  const run = async (): Promise<string> => {
    const names = await leftoversOf(path);
    const kept: string[] = [];
    for (const name of names) if (!(await swept(join(dirname(path), name)))) kept.push(name);
    return kept.length === 0 ? `${names.length} removed` : `still running, left for the next time: ${kept.join(", ")}`;
  };
  return [
    {
      action: "remove",
      target: join(dirname(path), `*${basename(path)}.*`),
      detail: "what earlier runs have left",
      run,
    },
  ];
}

const leftoversOf = async (path: string): Promise<readonly string[]> =>
  (await readdir(dirname(path)).catch(() => [])).filter((name) => isLeftover(path, name) || isSetAside(path, name));

async function swept(path: string): Promise<boolean> {
  try {
    return await removeFile(path);
  } catch (caught) {
    throw failed("remove", path, caught);
  }
}
