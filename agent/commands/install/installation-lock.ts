import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { InstanceLock } from "../../../shared/server/instance-lock.ts";
import { openSystem } from "../../../shared/server/open-system.ts";
import { failed } from "./executable-file.ts";

/** Its name in the directory of the executables; no runtime takes it for a plugin. */
export const lockName = ".pipette.lock";

/**
 * Keeps a second installation away from this directory, which is made where it is missing. The lock ends with the
 * process, however that ends.
 * @throws {CniError} code 5 naming the process that holds it
 */
export async function lockInstallation(directory: string): Promise<InstanceLock> {
  await mkdir(directory, { recursive: true, mode: 0o755 }).catch((caught) => {
    throw failed("make", directory, caught);
  });
  const path = join(directory, lockName);
  return InstanceLock.take(path, "a change of the installation", `"${directory}"`, await openSystem());
}
