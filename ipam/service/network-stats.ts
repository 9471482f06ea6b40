import { latestVersion } from "../../shared/cni/versions.ts";
import { Fields } from "../../shared/json-fields.ts";
import type { NetworkStats, RangeStats } from "../../shared/proto/ipam-messages.ts";
import { parseIpamConfig } from "../config/ipam-config.ts";
import type { IpamHost } from "./ipam-rpcs.ts";

/** Numbers of one network or of all, by name: of those that have a lease, or ranges of the server's own. */
export function statsOf(host: IpamHost, network: string | undefined): readonly NetworkStats[] {
  const counts = new Map(host.allocator.counts().map((entry) => [entry.network, entry]));
  const names = [...new Set([...counts.keys(), ...host.sections.keys()])].sort();
  return names
    .filter((name) => network === undefined || name === network)
    .map((name) => {
      const { allocated = 0, releasing = 0, cooling = 0 } = counts.get(name) ?? {};
      return { network: name, allocated, releasing, cooling, ranges: rangesOf(host, name) };
    });
}

function rangesOf({ allocator, sections }: IpamHost, network: string): readonly RangeStats[] {
  const ipam = sections.get(network);
  if (ipam === undefined) return [];
  const conf = new Fields({ name: network, ipam });
  const config = parseIpamConfig({ conf, network, version: latestVersion, args: "" });
  return allocator.usage(network, config).map(({ range, total, used, cooling, free }) => ({
    range,
    total: String(total),
    used,
    cooling,
    free: String(free),
  }));
}
