import { type BridgeNetwork, createBridgeDataPath } from "../../agent/datapath/bridge/mod.ts";
import type { AttachRequest, DataPath } from "../../agent/datapath/datapath.ts";
import type { CniResult, Owner } from "../../shared/cni/types.ts";
import { CniError } from "../../shared/errors.ts";
import { createLogger, type Logger } from "../../shared/log.ts";
import { type Cidr, type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";

export function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`Not a block: ${text}`);
  return parsed;
}

export function ip(text: string): Ip {
  const parsed = parseIp(text);
  if (parsed === undefined) throw new Error(`Not an address: ${text}`);
  return parsed;
}

export const networkName = "pods";
export const bridgeName = "ptc0";

export const network: BridgeNetwork = {
  name: networkName,
  subnets: [cidr("10.77.0.0/24"), cidr("fd77::/64")],
  bridge: bridgeName,
  hairpin: false,
  masquerade: false,
};

/** Lines that a data path logged at `warn` or above go here, for tests that want none. */
export const loggerInto = (lines: string[]): Logger => createLogger("warn", (line) => lines.push(line));

/** @param leases addresses that our own allocator has given out, by sandbox */
export function openDataPath(
  changes: Partial<BridgeNetwork> = {},
  lines: string[] = [],
  leases: Readonly<Record<string, readonly string[]>> = {},
): DataPath {
  const networks = [{ ...network, ...changes }];
  const leasedTo = ({ sandboxId }: Owner): readonly Ip[] => (leases[sandboxId] ?? []).map(ip);
  return createBridgeDataPath({ networks, leasedTo, logger: loggerInto(lines) });
}

export const ownerOf = (sandboxId: string, ifname = "eth0"): Owner => ({ network: networkName, sandboxId, ifname });

/** Dual stack, with default routes, `host` being the last part of both addresses. */
export function requestFor(sandboxId: string, netns: string, host: number): AttachRequest {
  return {
    owner: ownerOf(sandboxId),
    container: { id: sandboxId, netns, kind: { t: "sandbox" } },
    ownLease: true,
    pod: { namespace: "default", name: `web-${sandboxId}`, uid: "" },
    ipam: ipamOf([`10.77.0.${host}/24`, `fd77::${host}/64`]),
  };
}

/** @param gateways of the addresses' families */
export function ipamOf(
  addresses: readonly string[],
  gateways: readonly string[] = ["10.77.0.1", "fd77::1"],
): CniResult {
  const ips = addresses.map((text) => {
    const address = cidr(text);
    const gateway = gateways.map(ip).find(({ family }) => family === address.ip.family);
    if (gateway === undefined) throw new Error(`Not a gateway for ${text}`);
    return { address, gateway };
  });
  const dsts = ips.map(({ address }) => (address.ip.family === 4 ? "0.0.0.0/0" : "::/0"));
  return { interfaces: [], ips, routes: dsts.map((dst) => ({ dst: cidr(dst) })), dns: { nameservers: ["10.77.0.1"] } };
}

/** What `promise` failed with; an error of its own where it did not fail. */
export async function failureOf(promise: Promise<unknown>): Promise<CniError> {
  const caught = await promise.then(
    () => new Error("It succeeded"),
    (error: unknown) => error,
  );
  if (caught instanceof CniError) return caught;
  throw caught;
}
