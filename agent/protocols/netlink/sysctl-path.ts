import { accessSync, constants } from "node:fs";

const usual = "/proc/sys/net/";
/** Where conf/kubernetes mounts the node's: a container that is not privileged has `/proc/sys` read-only. */
const mounted = "/host/proc/sys/net/";
/** Always there, and root's to write. */
const sample = "ipv4/ip_forward";

/** Once the usual place was seen to be writable: to ask is dear where an ADD does, and a mount is not made read-only again. */
let isUsual = false;

/**
 * Under which path a file of `/proc/sys/net` can be written. Both speak of the network namespace of the thread that opens
 * them, whichever the mount was made in.
 */
export function sysctlPath(path: string): string {
  isUsual ||= !isReadOnly(usual);
  if (isUsual || !path.startsWith(usual) || isReadOnly(mounted)) return path;
  return mounted + path.slice(usual.length);
}

/** Whether it is mounted read-only, or not mounted at all. */
function isReadOnly(root: string): boolean {
  try {
    accessSync(root + sample, constants.W_OK);
    return false;
  } catch {
    return true;
  }
}
