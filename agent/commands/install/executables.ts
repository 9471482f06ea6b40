import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { paths } from "../../../shared/os/paths.ts";
import { type ExecutableFile, ExecutableReader } from "./executable-reader.ts";
import {
  failed,
  freeNameAside,
  isMissing,
  linkBeside,
  nameBeside,
  placeFile,
  removeFile,
  syncDirectory,
} from "./files.ts";
import type { Step } from "./plan.ts";

/** The size of the chunks in which executables are read and copied. */
const chunkBytes = 1024 * 1024;

/** The directories of the executables; `places.ts` chooses them. */
export interface Places {
  /** Where the runtime looks for plugins. */
  readonly bin: string;
  /**
   * The directory of the whole program, if `bin` has the small one of `forward/` under both names; absent: `bin` has
   * the whole one under both.
   */
  readonly libexec?: string | undefined;
}

/** Both names of the plugins in `directory`, that of the agent's face first. */
export const executablesIn = (directory: string): readonly [string, string] => [
  join(directory, `pipette${paths.executableSuffix}`),
  join(directory, `pipette-ipam${paths.executableSuffix}`),
];

/** The whole program, which the small one executes if no daemon answers. */
export const wholeIn = (libexec: string): string => join(libexec, `pipette${paths.executableSuffix}`);

/** All executables in the order of their installation: a small program never exists without its whole one. */
export const executablesAt = ({ bin, libexec }: Places): readonly string[] => [
  ...(libexec === undefined ? [] : [wholeIn(libexec)]),
  ...executablesIn(bin),
];

export interface PlannedExecutables {
  readonly steps: readonly Step[];
  /** The path of the whole program once the steps are done, which a service runs. */
  readonly whole: string;
}

/**
 * Plans to install the executable `from`, the whole program before the small one, and the second name as a hard link if
 * the file system supports it. An executable that carries no small program is installed under both names itself.
 * @throws {CniError} code 5 where something is in the way; nothing was changed
 */
export async function planExecutables(from: string, { bin, libexec }: Places): Promise<PlannedExecutables> {
  const reader = new ExecutableReader();
  const source = await reader.contentsOf(from);
  if (source.program !== "whole")
    throw new CniError(
      CniCode.io,
      source.program === "small"
        ? `Cannot install "${from}": it is the small program in front of Pipette, wanted the whole one, which carries it`
        : `Cannot install "${from}": it is no executable of Pipette, wanted one that "npm run build" has made`,
    );
  const whole: Content = { ...source, write: (path) => copyWhole(from, path) };
  const front = libexec === undefined || source.carried === undefined ? whole : contentOf(source.carried);
  const places: Places = front === whole ? { bin } : { bin, libexec };
  const [main, ipam] = executablesIn(bin);
  const write = async (path: string): Promise<void> => {
    if (!(await linkBeside(main, path))) await front.write(path);
  };
  const wanted: readonly (readonly [string, Content])[] = [
    ...(places.libexec === undefined ? [] : [[wholeIn(places.libexec), whole] as const]),
    [main, front],
    [ipam, { ...front, write }],
  ];
  const steps: Step[] = [];
  for (const directory of directoriesOf(places))
    if (!(await directoryIsThere(directory))) steps.push(makeDirectory(directory));
  for (const [path, content] of wanted) steps.push(await place(path, content, reader));
  return { steps, whole: executablesAt(places)[0] ?? main };
}

/**
 * Plans the removal of all, and of files that running executables have left.
 * @throws {CniError} where another's file has the name
 */
export async function planRemoval(places: Places): Promise<readonly Step[]> {
  const reader = new ExecutableReader();
  const steps: Step[] = [];
  const present: string[] = [];
  for (const directory of directoriesOf(places)) if (await directoryIsThere(directory)) present.push(directory);
  const there = executablesAt(places).filter((path) => present.includes(dirname(path)));
  for (const path of there.toReversed()) {
    const old = await reader.lookAt(path);
    if (old.t === "absent") steps.push({ action: "none", target: path, detail: "is not there" });
    else steps.push({ action: "remove", target: path, detail: "", run: () => takeAway(path, old.digest) });
  }
  return steps;
}

export const directoriesOf = ({ bin, libexec }: Places): readonly string[] => [
  ...(libexec === undefined ? [] : [libexec]),
  bin,
];

/** What is to stand at a path. */
interface Content {
  /** SHA-256, in hexadecimal. */
  readonly digest: string;
  readonly bytes: number;
  /** As a new file, on the disk before this answers. */
  write(path: string): Promise<void>;
}

const contentOf = (bytes: Uint8Array): Content => ({
  digest: createHash("sha256").update(bytes).digest("hex"),
  bytes: bytes.length,
  write: (path) => writeNew(path, async (file) => void (await file.writeFile(bytes))),
});

async function place(path: string, content: Content, reader: ExecutableReader): Promise<Step> {
  const old = await reader.lookAt(path);
  const size =
    content.bytes < 1e6 ? `${(content.bytes / 1e3).toFixed(1)} kB` : `${(content.bytes / 1e6).toFixed(1)} MB`;
  const detail = `${size}, SHA-256 ${content.digest.slice(0, 12)}…`;
  if (old.t === "ours" && old.digest === content.digest && (old.runnable || paths.executableSuffix !== ""))
    return { action: "keep", target: path, detail: `${detail}, the same already` };
  const run = () => put(path, old, content, reader);
  return { action: old.t === "absent" ? "create" : "replace", target: path, detail, run };
}

async function put(
  path: string,
  old: ExecutableFile,
  { digest, write }: Content,
  reader: ExecutableReader,
): Promise<string | undefined> {
  const temporary = nameBeside(path);
  try {
    await write(temporary);
    const written = await reader.contentsOf(temporary);
    if (written.digest !== digest)
      throw new CniError(
        CniCode.io,
        `Cannot write "${path}": its SHA-256 reads back as ${written.digest}, wanted ${digest}`,
      );
    const aside = await placeFile(temporary, path, old.t === "ours" ? old.digest : undefined);
    await syncDirectory(dirname(path));
    return aside === undefined ? undefined : `the running one goes on as "${aside}"`;
  } catch (caught) {
    await unlink(temporary).catch(() => undefined);
    throw caught instanceof CniError ? caught : failed("write", path, caught);
  }
}

async function copyWhole(from: string, to: string): Promise<void> {
  await using source = await open(from, "r");
  await writeNew(to, async (target) => {
    const buffer = new Uint8Array(chunkBytes);
    for (;;) {
      const { bytesRead } = await source.read(buffer, 0, chunkBytes);
      if (bytesRead === 0) return;
      for (let at = 0; at < bytesRead; ) at += (await target.write(buffer, at, bytesRead - at)).bytesWritten;
    }
  });
}

async function writeNew(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  await using target = await open(path, "wx", 0o755);
  await write(target);
  // Set explicitly, because the installing user's umask could keep the runtime from running it.
  await target.chmod(0o755);
  await target.sync();
}

async function takeAway(path: string, digest: string): Promise<string | undefined> {
  try {
    if (await removeFile(path)) return undefined;
    const aside = await freeNameAside(path, digest);
    await placeFile(path, aside, undefined);
    const { removeAtReboot } = await import("./windows-files.windows.ts");
    return `it runs; goes on as "${aside}", gone ${removeAtReboot(aside) ? "with the next start of the machine" : "with the next run"}`;
  } catch (caught) {
    throw failed("remove", path, caught);
  }
}

function makeDirectory(directory: string): Step {
  const run = async (): Promise<undefined> => {
    await mkdir(directory, { recursive: true, mode: 0o755 }).catch((caught) => {
      throw failed("make", directory, caught);
    });
  };
  return { action: "create", target: directory, detail: "directory", run };
}

async function directoryIsThere(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (caught) {
    if (isMissing(caught)) return false;
    throw failed("look at", path, caught);
  }
  throw new CniError(CniCode.io, `Cannot install into "${path}": it is no directory, wanted one, or nothing`);
}
