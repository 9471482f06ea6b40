import type { CniEnvironment } from "../shared/cni/environment.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { isWindows } from "../shared/platform.ts";

/**
 * Refuses what cannot be a namespace path before anything is taken. On Windows CNI_NETNS is no
 * path, and the agent tells its forms apart. Whether the path leads to a namespace that can be
 * entered is the agent's to find out: it does the entering.
 */
export function requireNetns({ netns }: CniEnvironment): void {
  if (isWindows || netns.startsWith("/")) return;
  const is = `CNI_NETNS is "${netns}"`;
  throw new CniError(
    CniCode.invalidEnvironment,
    `Cannot read the environment: ${is}, wanted the absolute path of a network namespace`,
  );
}
