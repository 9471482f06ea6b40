import { bitsOf, formatIp } from "../../../shared/net/ip.ts";
import type { AgentConfig, NetworkConfig, OvsConfig } from "../../config/agent-config.ts";
import { podMtu } from "../../config/pod-mtu.ts";
import { missingFromBridge } from "../../datapath/bridge/gateway-bridge.ts";
import { missingGateways } from "../../datapath/linux/gateway.ts";
import { findLink } from "../../datapath/linux/host-links.ts";
import { familiesNotForwarded } from "../../datapath/linux/node-sysctls.ts";
import { missingPacketRules } from "../../datapath/linux/packet-rules.ts";
import { defaultMtu } from "../../datapath/linux/plan.ts";
import { transportMtu } from "../../datapath/linux/transport.ts";
import { Kernel, listRoutes, type NetlinkSocket, readRoute } from "../../protocols/netlink/mod.ts";
import { rulesMissing } from "./agent-findings.ts";
import type { Finding } from "./finding.ts";

/** The node's own network, as far as pods need it: bridge or gateway, forwarding, MTU. Linux. @throws {NetlinkError} */
export async function hostFindings(config: AgentConfig): Promise<readonly Finding[]> {
  using kernel = new Kernel();
  using socket = kernel.openSocket();
  const { networks } = config;
  return [
    ...networks.flatMap((network) => gatewayProblems(config, network, socket)).map(gatewayFinding),
    ...familiesNotForwarded(networks).map(notForwarded),
    ...(config.dataPath === "bridge" ? (await missingPacketRules(kernel, networks)).map(rulesMissing) : []),
    ...networks.flatMap((network) => tooLarge(config, network, socket)),
  ];
}

function gatewayProblems(config: AgentConfig, network: NetworkConfig, socket: NetlinkSocket): readonly string[] {
  if (config.dataPath === "bridge") return missingFromBridge(socket, network);
  const { gateway: name, mode } = config.ovs ?? { gateway: "", mode: "encap" };
  const link = findLink(socket, { name });
  if (link === undefined) return [`the gateway "${name}" is missing`];
  const missing = mode === "networkPolicyOnly" ? [] : missingGateways(socket, network.subnets, link);
  return [
    ...(link.up ? [] : [`the gateway "${name}" is down`]),
    ...missing.map(({ ip }) => `the gateway "${name}" lacks the address "${formatIp(ip)}"`),
  ];
}

const gatewayFinding = (problem: string): Finding => ({
  severity: "error",
  code: "gateway",
  what: `${problem.charAt(0).toUpperCase()}${problem.slice(1)}`,
  trusts: "agent.yaml",
  why: "Pods of the node reach neither each other nor anything else",
  todo: "have the agent set it up again; find out who took it away",
  repair: { t: "node" },
  evidence: problem,
});

const notForwarded = (family: 4 | 6): Finding => ({
  severity: "error",
  code: "forwarding",
  what: `IPv${family} forwarding is off on the node`,
  trusts: "agent.yaml",
  why: "Pods reach nothing outside their own subnet",
  todo: "have the agent turn it on again; find out which program's sysctl settings turn it off",
  repair: { t: "node" },
  evidence: String(family),
});

/** Packets that do not fit the uplink may be dropped without notice to the pod. */
function tooLarge({ ovs }: AgentConfig, network: NetworkConfig, socket: NetlinkSocket): readonly Finding[] {
  // With Open vSwitch, an MTU that is not configured follows from the transport interface.
  if (ovs !== undefined && network.mtu === undefined) return [];
  const { name, mtu = defaultMtu } = network;
  const fits = ovs === undefined ? defaultRouteMtu(socket) : tunnelMtu(ovs, socket);
  if (fits === undefined || mtu <= fits) return [];
  return [
    {
      severity: "warning",
      code: "mtu",
      what: `Pods of network "${name}" send up to ${mtu} bytes, and the way out of the node takes ${fits}`,
      why: "Large packets are lost or cut up, so that connections hang after their first small ones",
      todo: `set "mtu" of the network to ${fits} in agent.yaml, start the agent again, and make the pods anew`,
      evidence: `${mtu} ${fits}`,
    },
  ];
}

function tunnelMtu(ovs: OvsConfig, socket: NetlinkSocket): number {
  const { nodeAddresses, uplink, mode, tunnel } = ovs;
  const addresses = nodeAddresses.map((ip) => ({ ip, prefix: bitsOf(ip.family) }));
  return podMtu(transportMtu(socket, uplink, addresses), mode, tunnel.type, addresses, ovs);
}

/** The MTU of the interface of the IPv4 default route; `undefined` if there is none. */
function defaultRouteMtu(socket: NetlinkSocket): number | undefined {
  const route = socket.dump(listRoutes(4), readRoute).find(({ dst }) => dst.prefix === 0);
  const index = route?.hops[0]?.index;
  return index === undefined ? undefined : findLink(socket, { index })?.mtu;
}
