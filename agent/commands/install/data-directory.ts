import { readdir, rm, rmdir, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Allocator, loadCheck } from "../../../ipam/mod.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { certificatesDirectory } from "../../config/certificates-config.ts";
import { codeOf, failed, isMissing, removeFile } from "./files.ts";
import type { Step } from "./plan.ts";

/**
 * What Pipette itself makes in its data directory; anything else there is somebody else's. `uplink.json` is missing: it
 * stays for as long as the node's addresses have not been given back.
 */
const ours =
  /^(leases\.db.*|agent\.lock|(agent\.log|policies\.log|history\.jsonl)(\.1|\.lock)?|nodes\.json|node-uid|policies\.state|wireguard\.(key|used))$/;
/** On Windows also these, which a clean-up of the host has emptied. */
const emptied = async (dataDir: string): Promise<readonly string[]> =>
  isWindows ? (await import("../../datapath/hns/mod.ts")).recordDirectories(dataDir) : [];

/** Pods that hold addresses of this node: their sandboxes, each once. @throws {CniError} code 101 where this user may not look */
export async function podsWithAddresses(dataDir: string): Promise<number> {
  const { databaseIn, requireRights } = await loadCheck();
  requireRights(databaseIn(dataDir));
  using store = await Allocator.openExisting(dataDir);
  const held = store?.list().filter((lease) => lease.state === "allocated") ?? [];
  return new Set(held.map((lease) => lease.owner.sandboxId)).size;
}

/** Removes leases, logs and the node's own keys, and the directory where that leaves it empty. */
export function removeData(dataDir: string): Step {
  const run = async (): Promise<string | undefined> => {
    const names = await readdir(dataDir).catch((caught) => {
      if (isMissing(caught)) return undefined;
      throw failed("read", dataDir, caught);
    });
    if (names === undefined) return "is not there";
    for (const name of names.filter((candidate) => ours.test(candidate)))
      await removeFile(join(dataDir, name)).catch((caught) => {
        throw failed("remove", join(dataDir, name), caught);
      });
    const keys = certificatesDirectory(dataDir);
    await rm(keys, { recursive: true, force: true }).catch((caught) => {
      throw failed("remove", keys, caught);
    });
    for (const directory of await emptied(dataDir)) await removeIfEmpty(directory);
    return removeIfEmpty(dataDir);
  };
  return { action: "remove", target: dataDir, detail: "leases, logs and keys", run };
}

/** Removes what an agent that has ended leaves of its socket, and the directory where that leaves it empty. */
export function removeSocket(socket: string): Step {
  const run = async (): Promise<undefined> => {
    for (const path of [socket, `${socket}.lock`])
      await removeFile(path).catch((caught) => {
        throw failed("remove", path, caught);
      });
    await removeIfEmpty(dirname(socket));
  };
  return { action: "remove", target: socket, detail: "the agent's socket and its lock", run };
}

/** Removes the configuration, and its directory where that leaves it empty. */
export function removeConfig(path: string): Step {
  const run = async (): Promise<string | undefined> => {
    try {
      await unlink(path);
    } catch (caught) {
      // A ConfigMap mounted in a pod belongs to the cluster and stays.
      if (codeOf(caught) === "EROFS") return "stays: it is mounted here, read-only";
      if (!isMissing(caught)) throw failed("remove", path, caught);
      return "is not there";
    }
    await removeIfEmpty(dirname(path));
    return undefined;
  };
  return { action: "remove", target: path, detail: "configuration", run };
}

async function staysFor(directory: string): Promise<string> {
  const names = (await readdir(directory).catch(() => [])).sort();
  const told = names.slice(0, 3).map((name) => `"${name}"`);
  const more = names.length > told.length ? ` and ${names.length - told.length} more` : "";
  return `the directory stays: it holds ${told.join(", ")}${more}, which is not of our making; rm -r takes it away`;
}

async function removeIfEmpty(directory: string): Promise<string | undefined> {
  try {
    await rmdir(directory);
    return undefined;
  } catch (caught) {
    if (["ENOTEMPTY", "EEXIST"].includes(codeOf(caught))) return staysFor(directory);
    if (isMissing(caught)) return undefined;
    // A mount point cannot be removed.
    if (["EBUSY", "EROFS"].includes(codeOf(caught)))
      return "the empty directory stays: it is mounted here; rmdir on the node takes it away";
    throw failed("remove", directory, caught);
  }
}
