import { parseIp } from "../../shared/net/ip.ts";
import { type Fields, show } from "../../shared/schema/json-fields.ts";
import type { PortMapping } from "../datapath/datapath.ts";

const maxPortMappings = 256;
const lastPort = 65_535;

/**
 * `runtimeConfig.portMappings` (capability `portMappings`), keys in any case: containerd writes `HostPort`. Entries
 * without a host port are ignored.
 * @throws {CniError} code 7 naming the entry, also for an address of the host: HNS maps a port on all of them
 */
export function portMappingsOf(conf: Fields): readonly PortMapping[] {
  const entries = conf.object("runtimeConfig")?.objects("portMappings") ?? [];
  if (entries.length > maxPortMappings)
    throw conf.refused("runtimeConfig.portMappings", `${entries.length} entries long`, `${maxPortMappings} at most`);
  return entries.flatMap((entry): PortMapping[] => {
    const hostPort = entry.integer("hostPort", 0, lastPort) ?? 0;
    if (hostPort === 0) return [];
    const containerPort = entry.integer("containerPort", 1, lastPort);
    if (containerPort === undefined) throw entry.wrong("containerPort", undefined, `a port from 1 to ${lastPort}`);
    requireEveryAddress(entry);
    const protocol = (entry.string("protocol") || "tcp").toLowerCase();
    if (protocol !== "tcp" && protocol !== "udp") throw entry.wrong("protocol", protocol, '"tcp" or "udp"');
    return [{ hostPort, containerPort, protocol }];
  });
}

function requireEveryAddress(entry: Fields): void {
  const text = entry.string("hostIP") ?? "";
  if (text === "" || parseIp(text)?.value === 0n) return;
  throw entry.refused(entry.pathOf("hostIP"), show(text), "no address or 0.0.0.0: HNS maps a port on every address");
}
