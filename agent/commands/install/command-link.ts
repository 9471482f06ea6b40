import { lstat, readlink, stat, symlink, unlink } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { isWindows } from "../../../shared/os/platform.ts";
import { codeOf, failed, isMissing } from "./files.ts";
import type { Step } from "./plan.ts";

/** The directory for an administrator's commands on every Linux. */
const usualDir = "/usr/local/bin";
/** The command, and the names by which kubectl finds it as a plugin, and what completes that one's lines. */
const commandNames = ["pipette", "kubectl-pipette", "kubectl_complete-pipette"];

/** Where the command gets its link. */
export interface LinkWish {
  /** `--link-dir`; absent: the usual one, where PATH has it. */
  readonly dir?: string | undefined;
  /** `--no-link` */
  readonly none: boolean;
  /** The PATH of whoever installs. */
  readonly path: string;
}

/**
 * Plans the links that make `pipette` a command, and a plugin of kubectl, because the runtime's directory of plugins is
 * not in PATH. If another program has a name it stays, with a message.
 * @param main the installed executable
 */
export async function planLink(
  main: string,
  wish: LinkWish,
): Promise<{ readonly steps: readonly Step[]; readonly warnings: readonly string[] }> {
  const nothing = { steps: [], warnings: [] };
  if (wish.none) return nothing;
  if (isWindows) return { steps: hintForWindows(main, wish.path), warnings: [] };
  const dir = wish.dir === undefined ? usualDir : resolve(wish.dir);
  if (wish.dir === undefined && !wish.path.split(delimiter).includes(usualDir)) return nothing;
  if (!(await isDirectory(dir))) return nothing;
  const plans = await Promise.all(commandNames.map((name) => planOne(join(dir, name), main)));
  return { steps: plans.flatMap(({ steps }) => steps), warnings: plans.flatMap(({ warnings }) => warnings) };
}

async function planOne(
  path: string,
  main: string,
): Promise<{ readonly steps: readonly Step[]; readonly warnings: readonly string[] }> {
  // Installed there itself.
  if (path === main) return { steps: [], warnings: [] };
  const is = await lookAt(path);
  if (is.t === "other") return { steps: [], warnings: [`"${path}" is not ours and stays: call "${main}"`] };
  if (is.t === "link" && is.to === main)
    return { steps: [{ action: "keep", target: path, detail: `link to ${main}` }], warnings: [] };
  if (is.t === "link" && (await isThere(is.to)))
    return { steps: [], warnings: [`"${path}" leads to "${is.to}" and stays: call "${main}"`] };
  const run = async (): Promise<undefined> => {
    try {
      // A dangling link is replaced: it is of an earlier installation, or of no use.
      if (is.t === "link") await unlink(path);
      await symlink(main, path);
    } catch (caught) {
      throw failed("link", path, caught);
    }
  };
  const action = is.t === "link" ? "replace" : "create";
  return { steps: [{ action, target: path, detail: `link to ${main}`, run }], warnings: [] };
}

/** What takes the links away again, where they lead to `main`. */
export async function planUnlink(main: string, dir: string = usualDir): Promise<readonly Step[]> {
  if (isWindows) return [];
  return (await Promise.all(commandNames.map((name) => unlinkOne(join(resolve(dir), name), main)))).flat();
}

async function unlinkOne(path: string, main: string): Promise<readonly Step[]> {
  const is = await lookAt(path);
  if (is.t !== "link" || is.to !== main) return [];
  const run = async (): Promise<undefined> => {
    await unlink(path).catch((caught) => {
      if (!isMissing(caught)) throw failed("remove", path, caught);
    });
  };
  return [{ action: "remove", target: path, detail: `link to ${main}`, run }];
}

type Found = { readonly t: "absent" } | { readonly t: "link"; readonly to: string } | { readonly t: "other" };

async function lookAt(path: string): Promise<Found> {
  try {
    const found = await lstat(path);
    return found.isSymbolicLink() ? { t: "link", to: await readlink(path) } : { t: "other" };
  } catch (caught) {
    if (["ENOENT", "ENOTDIR"].includes(codeOf(caught))) return { t: "absent" };
    throw failed("look at", path, caught);
  }
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );

const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** The machine's PATH is left to the operator, because many programs write it. */
function hintForWindows(main: string, path: string): readonly Step[] {
  const dir = main.slice(0, main.lastIndexOf("\\"));
  if (path.toLowerCase().split(";").includes(dir.toLowerCase())) return [];
  const command = `[Environment]::SetEnvironmentVariable('Path', [Environment]::GetEnvironmentVariable('Path', 'Machine') + ';${dir}', 'Machine')`;
  return [{ action: "none", target: "PATH", detail: `has no "${dir}"; in PowerShell: ${command}` }];
}
