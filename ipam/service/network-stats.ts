import { latestVersion } from "../../shared/cni/versions.ts";
import type { NetworkStats, RangeStats } from "../../shared/proto/ipam-messages.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { parseAnyRanges } from "../config/ipam-config.ts";
import { readSettingsFile } from "../config/settings-file.ts";
import type { IpamHost } from "./ipam-rpcs.ts";

/** Numbers of one network or of all, by name: of those that have a lease, or ranges of the server's own. */
export async function statsOf(host: IpamHost, network: string | undefined): Promise<readonly NetworkStats[]> {
  const counts = new Map(host.allocator.counts().map((entry) => [entry.network, entry]));
  const names = [...new Set([...counts.keys(), ...host.sections.keys()])].sort();
  const wanted = names.filter((name) => network === undefined || name === network);
  return Promise.all(
    wanted.map(async (name) => {
      const { allocated = 0, releasing = 0, cooling = 0 } = counts.get(name) ?? {};
      return { network: name, allocated, releasing, cooling, ranges: await rangesOf(host, name) };
    }),
  );
}

async function rangesOf({ allocator, dataDir, sections }: IpamHost, network: string): Promise<readonly RangeStats[]> {
  const settings = await readSettingsFile(dataDir, network);
  const conf = new Fields({ name: network, ipam: sections.get(network) ?? {} });
  const request = { conf, network, version: latestVersion, args: "" };
  const config = parseAnyRanges(settings === undefined ? request : { ...request, settings });
  return allocator.usage(network, config).map(({ range, total, used, cooling, free }) => ({
    range,
    total: String(total),
    used,
    cooling,
    free: String(free),
  }));
}
