import { accessSync, constants, lstatSync, readlinkSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { letsOthersIn, ownershipRule } from "../../shared/os/ownership.ts";
import { isWindows } from "../../shared/os/platform.ts";
import type { AgentConfig } from "./agent-config.ts";

/**
 * Whoever changes what agent.yaml says, or a file that it names, has root write files, run plugins and send pods' packets
 * where they like. So these have to be root's, with all links on the way and the directories that hold them. What is
 * above those is not looked at; on Windows permissions say it, which `pipette install` sets.
 */

/** `agent.yaml` itself, and the files that it names. */
export function filesOf(file: string, { nodes, ovs }: AgentConfig): readonly string[] {
  const named = [ovs?.services.file];
  const registry = nodes?.registry;
  if (registry?.type === "static") named.push(registry.file);
  if (registry?.type === "etcd") named.push(registry.ca, registry.cert, registry.key);
  if (registry?.type === "kubernetes") named.push(registry.ca, registry.token);
  return [file, ...named.filter((path) => path !== undefined)];
}

/**
 * What lets others change what root reads at `path`: `"/etc/pipette" can be written by others (mode 777), wanted …`, with
 * what to do; `undefined` where nothing does, where nothing is there, and for others than root, whose own risk it is.
 */
export function openToOthers(path: string): string | undefined {
  if (isWindows || process.geteuid?.() !== 0) return undefined;
  try {
    let name = resolve(path);
    for (let links = 0; links < mostLinks; links++) {
      const stat = lstatSync(name);
      const is = openName(name, stat);
      if (is !== undefined || !stat.isSymbolicLink()) return is;
      name = resolve(dirname(name), readlinkSync(name));
    }
  } catch {
    // Whoever reads it says why it cannot.
  }
  return undefined;
}

/** @throws {Error} where its directory is not there */
function openName(path: string, stat: Stats): string | undefined {
  // The mode of a link means nothing.
  const itself = letsOthersIn(stat.isSymbolicLink() ? { uid: stat.uid, mode: 0 } : stat);
  if (itself !== undefined) return told(path, itself);
  const directory = dirname(path);
  const { uid, mode } = statSync(directory);
  const is = letsOthersIn({ uid, mode: 0 }) ?? (keepsNames(directory, mode) ? undefined : letsOthersIn({ uid, mode }));
  return is === undefined ? undefined : told(directory, is);
}

/** More than the kernel follows. */
const mostLinks = 64;
const sticky = 0o1000;

/**
 * Whether others can put nothing in the place of what root has in this directory, although they may write to it: as in
 * /tmp; or where it is mounted so that nothing can be written, as the kubelet mounts ConfigMaps and Secrets, which are
 * directories of mode 777. On such a mount of a host's directory others may put files of theirs, whose owner is seen.
 */
function keepsNames(directory: string, mode: number): boolean {
  if ((mode & sticky) !== 0) return true;
  try {
    accessSync(directory, constants.W_OK);
    return false;
  } catch (caught) {
    return caught instanceof Error && "code" in caught && caught.code === "EROFS";
  }
}

const told = (path: string, is: string): string =>
  `"${path}" ${is}, wanted ${ownershipRule}: find out who has been there, then "chown root" and "chmod go-w" it`;
