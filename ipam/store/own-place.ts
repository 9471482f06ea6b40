import { CniCode, CniError } from "../../shared/errors.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { ownershipNow } from "../../shared/os/read-now.linux.ts";
import { letsOthersIn, ownershipRule } from "../../shared/os/rights.ts";

/**
 * Refuses a database or a directory that other users can write: they could give one pod's address to another.
 * @throws {CniError} code 101; on Windows the directory's permissions keep others out
 */
export function requireOwnPlace(path: string, directory: string): void {
  if (isWindows) return;
  requireOwn(directory, "its directory ", path);
  requireOwn(path, "it ", path);
}

function requireOwn(place: string, what: string, path: string): void {
  const found = ownershipNow(place);
  const is = found === undefined ? undefined : letsOthersIn(found);
  if (is === undefined) return;
  throw new CniError(
    CniCode.ipamFailure,
    `Cannot use the lease database "${path}": ${what}${is}, wanted ${ownershipRule}`,
    {
      details: `Nothing was read. Find out who has been there; then chown and chmod "${place}", or name another dataDir`,
    },
  );
}
