import { type IpamConfig, parseIpamConfig } from "../../ipam/mod.ts";
import { parseDns } from "../../shared/cni/result.ts";
import type { CniDns } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { interfaceMac, macRule } from "../../shared/net/parse-mac.ts";
import { Fields, show } from "../../shared/schema/json-fields.ts";
import type { AgentConfig, NetworkConfig } from "../config/agent-config.ts";
import { ipamSection } from "../config/network-sections.ts";
import type { CmdRequest } from "./cmd-request.ts";

/** For a request that brought no address: the network's own ranges, and what the request asks for (`ips`, `IP=`). */
export function agentIpamConfig(config: AgentConfig, network: NetworkConfig, request: CmdRequest): IpamConfig {
  const conf = new Fields({ ...withoutKey(request.conf.raw, "ipam"), ipam: ipamSection(config, network) });
  return parseIpamConfig({ conf, network: network.name, version: request.version, args: request.args });
}

/** Keys match in any case, so `IPAM` must go too. */
const withoutKey = (raw: Readonly<Record<string, unknown>>, key: string): Record<string, unknown> =>
  Object.fromEntries(Object.entries(raw).filter(([name]) => name.toLowerCase() !== key));

/** What the runtime asks for this pod, or what the configuration says for all; `undefined` where neither says anything. */
export function requestedDns(conf: Fields): CniDns | undefined {
  const sections = [conf.object("runtimeConfig")?.object("dns"), conf.object("dns")];
  return sections.map(parseDns).find((dns) => Object.values(dns).some((value) => value.length > 0));
}

/** The hardware address that the request asks for: `runtimeConfig.mac`, else `MAC` in CNI_ARGS (podman). */
export function requestedMac(request: CmdRequest): string | undefined {
  const runtime = request.conf.object("runtimeConfig");
  const fromArgs = request.args.split(";").find((pair) => pair.startsWith("MAC="));
  const text = runtime?.string("mac") || fromArgs?.slice(4);
  if (text === undefined || text === "") return undefined;
  const mac = interfaceMac(text);
  if (mac !== undefined) return mac;
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot wire "${request.owner.sandboxId}": the hardware address asked for is ${show(text)}, wanted ${macRule}`,
  );
}
