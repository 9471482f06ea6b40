import { parseResult, requireAddress } from "../shared/cni/result.ts";
import type { CniResult } from "../shared/cni/types.ts";
import { type CniVersion, parseVersion } from "../shared/cni/versions.ts";
import { CniCode } from "../shared/errors.ts";
import { Fields } from "../shared/schema/json-fields.ts";

/**
 * The result of a delegated ADD. A plugin of an older make may answer in an older version than it
 * was asked in, and then says so; one that says nothing that we know answers in the configuration's.
 * @throws {CniError} code 6 for what is no result, 101 for one without an address
 */
export function parseDelegateResult(text: string, type: string, version: CniVersion): CniResult {
  const fields = Fields.parse(text, `result of the IPAM plugin "${type}"`, CniCode.decode);
  const own = fields.string("cniVersion");
  const result = parseResult(fields, own === undefined || own === "" ? version : (parseVersion(own) ?? version));
  requireAddress(result, type);
  return result;
}
