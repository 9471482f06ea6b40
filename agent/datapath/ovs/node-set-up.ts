import { formatCidr, formatIp } from "../../../shared/net/ip.ts";
import { formatMac } from "../../../shared/net/mac.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { waitForOfport } from "../../protocols/ovsdb/mod.ts";
import { gatewayAddress } from "../addresses.ts";
import { gatewayMac } from "../linux/names.ts";
import { ensureNodeBridge, gatewayPort, tunnelPort, uplinkPort } from "./database/node-bridge.ts";
import { bringCertificate } from "./database/node-certificate.ts";
import { openInUserSpace, type SwitchDatabase, uplinkOf } from "./database/switch-database.ts";
import type { OvsNodeOptions } from "./options.ts";
import type { Gateway } from "./overlay-node.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import type { MeterSupport } from "./program/meters.ts";

/** The gateway as the options have it. @throws {CniError} 7 where a subnet has no room for one */
export const gatewayOf = ({ gateway, bridge, podSubnets, mode, mtu }: OvsNodeOptions): Gateway => ({
  name: gateway,
  mac: formatMac(gatewayMac(bridge, podSubnets)),
  addresses: mode === "networkPolicyOnly" ? [] : podSubnets.map(gatewayAddress),
  mtu,
});

/**
 * The node's own part of the switch: bridge, gateway, tunnel and uplink, as the options have them. Repeatable: what is
 * right is not changed.
 * @returns the context of the node's flows
 * @throws {OvsdbError | CniError}
 */
export async function setUpNode(
  db: SwitchDatabase,
  options: OvsNodeOptions,
  meters: MeterSupport,
): Promise<PipelineContext> {
  const { bridge, kind, mode, tunnel, uplink, nodeAddresses, podSubnets, host } = options;
  const gateway = gatewayOf(options);
  const kernelEncrypts = options.encryption === "wireguard";
  const tunnelPerPeer = options.encryption === "ipsec";
  // Past the kernel nothing is encrypted, whoever is to do it.
  const mayLeadPast = tunnelPerPeer && kind === "netdev";
  const arePast = mayLeadPast && (await host.leadPastKernel?.(openInUserSpace(db.view))) !== false;
  const isTunnelled = !kernelEncrypts && !arePast && (mode === "encap" || mode === "hybrid");
  if (!tunnelPerPeer) await bringCertificate(db, undefined);
  const uplinkMac = uplink === undefined ? undefined : await host.macOf(uplink);
  const [only, second] = nodeAddresses;
  const ports = [
    gatewayPort(gateway.name, gateway.mac, gateway.mtu),
    ...(isTunnelled ? [tunnelPort(tunnel, second === undefined ? only?.ip : undefined)] : []),
    ...(uplink === undefined ? [] : [uplinkPort(uplink)]),
  ];
  // The bridge must not be removed while it has the node's addresses.
  const former = uplinkOf(db.view, bridge);
  if (former !== undefined && former !== uplink) await host.moveAddresses(bridge, former);
  const mac = uplinkMac === undefined ? {} : { mac: uplinkMac };
  await ensureNodeBridge(db, { name: bridge, kind, ports, keepsPeers: tunnelPerPeer, ...mac });
  const ofportOf = (name: string): Promise<number> => waitForOfport(db, { name });
  return {
    mode,
    ...(kernelEncrypts ? { kernelEncrypts } : {}),
    ...(tunnelPerPeer ? { tunnelPerPeer } : {}),
    gateway: {
      ofport: await ofportOf(gateway.name),
      mac: gateway.mac,
      // If another plugin routes, the gateway has no address of its own and uses the node's.
      addresses: (mode === "networkPolicyOnly" ? nodeAddresses : gateway.addresses).map(({ ip }) => ip),
    },
    ...(isTunnelled ? { tunnel: { ...tunnel, ofport: await ofportOf(tunnel.name) } } : {}),
    ...(uplink === undefined || uplinkMac === undefined
      ? {}
      : { uplink: { ofport: await ofportOf(uplink), mac: uplinkMac } }),
    nodeAddresses,
    podSubnets: mode === "networkPolicyOnly" ? [] : podSubnets,
    ...(options.services?.proxyAll === true
      ? {
          nodePorts: {
            addresses: options.services.answersAt(await host.ownAddresses()),
            refuses: host.serve !== undefined,
          },
        }
      : {}),
    kernelServices: options.services === undefined ? options.serviceCidrs : [],
    joinsSctp: kind === "netdev" || isWindows,
    multitenant: options.tenants !== undefined,
    metered: await meters.isThere(),
  };
}

/** Whether the flows would be the same; port numbers can change. */
export const isSameContext = (a: PipelineContext, b: PipelineContext): boolean => textOf(a) === textOf(b);

const textOf = (context: PipelineContext): string => {
  const { gateway, tunnel, uplink, nodeAddresses, podSubnets, metered, nodePorts } = context;
  return JSON.stringify([
    gateway.ofport,
    gateway.addresses.map(formatIp),
    tunnel?.ofport,
    uplink,
    nodeAddresses.map(formatCidr),
    podSubnets.map(formatCidr),
    metered,
    nodePorts?.addresses.map(formatIp),
  ]);
};
