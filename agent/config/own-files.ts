import { accessSync, constants, lstatSync, readlinkSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { isWindows } from "../../shared/os/platform.ts";
import { letsOthersIn, ownershipRule } from "../../shared/os/rights.ts";
import type { AgentConfig } from "./agent-config.ts";
import { type CertificatesConfig, certificateSecrets } from "./certificates-config.ts";
import { wireguardKeyFile } from "./encryption-config.ts";

/**
 * Who can change agent.yaml, or a file that it names, can make root write files, run plugins and redirect pods'
 * packets. So these files have to belong to root, with all links on the way and their directories. Directories above
 * are not checked. On Windows `pipette install` sets the permissions instead.
 */

/** `agent.yaml` itself, and the files that it names. */
export function filesOf(file: string, { nodes, ovs, policies, services }: AgentConfig): readonly string[] {
  const named = [
    ovs?.services.file,
    ovs?.ipsec.pskFile,
    ...certificateFiles(ovs?.ipsec.certificates),
    policies?.ca,
    policies?.token,
    services?.file,
    services?.ca,
    services?.token,
  ];
  const registry = nodes?.registry;
  if (registry?.type === "static") named.push(registry.file);
  if (registry?.type === "etcd") named.push(registry.ca, registry.cert, registry.key);
  if (registry?.type === "kubernetes") named.push(registry.ca, registry.token);
  return [...new Set([file, ...named.filter((path) => path !== undefined)])];
}

const certificateFiles = (from: CertificatesConfig | undefined): readonly (string | undefined)[] =>
  from === undefined
    ? []
    : from.from === "files"
      ? [from.certificate, from.privateKey, from.authorities]
      : [from.token, from.ca];

/**
 * Why others can change what root reads at `path`: `"/etc/pipette" can be written by others (mode 777), wanted …`, with
 * what to do; `undefined` if they cannot, if nothing is there, and for other users than root.
 */
export function openToOthers(path: string): string | undefined {
  if (isWindows || process.geteuid?.() !== 0) return undefined;
  try {
    let name = resolve(path);
    for (let links = 0; links < maxLinks; links++) {
      const stat = lstatSync(name);
      const is = openName(name, stat);
      if (is !== undefined || !stat.isSymbolicLink()) return is;
      name = resolve(dirname(name), readlinkSync(name));
    }
  } catch {
    // The error is reported when the file is read.
  }
  return undefined;
}

/** @throws {Error} where its directory is not there */
function openName(path: string, stat: Stats): string | undefined {
  // A link's own mode has no meaning.
  const itself = letsOthersIn(stat.isSymbolicLink() ? { uid: stat.uid, mode: 0 } : stat);
  if (itself !== undefined) return told(path, itself);
  const directory = dirname(path);
  const { uid, mode } = statSync(directory);
  const is = letsOthersIn({ uid, mode: 0 }) ?? (keepsNames(directory, mode) ? undefined : letsOthersIn({ uid, mode }));
  return is === undefined ? undefined : told(directory, is);
}

/** More than the kernel follows. */
const maxLinks = 64;
const sticky = 0o1000;

/**
 * Whether others cannot replace root's files in this directory although its mode lets them write: with the sticky bit,
 * as /tmp, or on a read-only mount, as the kubelet mounts ConfigMaps and Secrets, whose directories have mode 777.
 * Files that others add there by way of the host are recognised by their owner.
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

/** A secret file, such as the node's key, that everybody on the node can read. */
export interface OpenSecret {
  readonly path: string;
  /** `"/etc/pipette/etcd.key" can be read by everybody (mode 644)`. */
  readonly what: string;
}

const readableByAll = 0o004;

/**
 * Checks the files that the configuration names; agent.yaml itself holds no secrets. Not needed on Windows, where
 * permissions are set by `pipette install`.
 */
export function openSecrets({ nodes, policies, services, ovs, dataDir }: AgentConfig): readonly OpenSecret[] {
  if (isWindows) return [];
  const registry = nodes?.registry;
  const files = [policies?.token, services?.token];
  if (registry?.type === "etcd") files.push(registry.key);
  if (registry?.type === "kubernetes") files.push(registry.token);
  if (ovs?.encryption === "wireguard") files.push(wireguardKeyFile(dataDir));
  if (ovs?.encryption === "ipsec")
    files.push(ovs.ipsec.pskFile, ...certificateSecrets(ovs.ipsec.certificates, dataDir));
  return [...new Set(files)].flatMap((path) => {
    const mode = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.mode;
    if (path === undefined || mode === undefined || (mode & readableByAll) === 0) return [];
    return [{ path, what: `"${path}" can be read by everybody (mode ${(mode & 0o777).toString(8)})` }];
  });
}
