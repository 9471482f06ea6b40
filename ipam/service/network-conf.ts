import { CniCode, CniError } from "../../shared/errors.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { IpamRequest } from "../config/ipam-config.ts";
import { readSettingsFile } from "../config/settings-file.ts";
import type { IpamHost } from "./ipam-rpcs.ts";

/** A network's configuration, and what its settings file adds. */
export interface FoundConf {
  readonly conf: Fields;
  readonly settings: Pick<IpamRequest, "settings">;
}

/**
 * The configuration of a call with an `ipam` section: its own, else the server's for this network, else what the
 * network's settings file says.
 * @throws {CniError} code 7 where there is none of them, 5 and 6 as `readSettingsFile`
 */
export async function networkConf(host: IpamHost, given: Fields, network: string): Promise<FoundConf> {
  const read = await readSettingsFile(host.dataDir, network);
  const settings = read === undefined ? {} : { settings: read };
  if (given.has("ipam")) return { conf: given, settings };
  const ipam = host.sections.get(network) ?? (read === undefined ? undefined : {});
  if (ipam !== undefined) return { conf: new Fields({ ...given.raw, ipam }), settings };
  const known = [...host.sections.keys()].map((name) => `"${name}"`).join(", ") || "no network";
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot allocate for network "${network}": its configuration has no "ipam" section and the server no ranges for it, wanted one of the two`,
    { details: `the server has ranges for ${known}` },
  );
}
