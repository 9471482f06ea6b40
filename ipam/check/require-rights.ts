import { CniCode, CniError } from "../../shared/errors.ts";
import { isForbidden, whoMay } from "../../shared/os/rights.ts";

/**
 * For people and their commands: what SQLite says of a file that it may not open is not what is wrong. A plugin, which
 * root's runtime starts, does not ask.
 * @throws {CniError} code 101 where this user may not open the database
 */
export function requireRights(database: string): void {
  if (!isForbidden(database)) return;
  const is = "this user may not open it (EACCES)";
  throw new CniError(CniCode.ipamFailure, `Cannot use the lease database "${database}": ${is}, wanted ${whoMay}`);
}
