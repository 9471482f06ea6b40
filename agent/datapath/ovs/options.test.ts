import { hostname, networkInterfaces } from "node:os";
import { describe, expect, test } from "vitest";
import { LiveValue } from "../../../shared/async/live-value.ts";
import { createLogger } from "../../../shared/log.ts";
import { formatCidr, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { ovsOptionsFromConfig } from "./options.ts";

const cidr = (text: string) => parseCidr(text)!;
const logger = createLogger("error", () => undefined);
const ovs = {
  database: "unix:/db",
  management: "unix:/m",
  mode: "encap",
  datapath: "netdev",
  gateway: "gw0",
  services: { cidrs: [cidr("10.96.0.0/12")] },
  multitenant: false,
  nodeAddresses: [],
  clusterSubnets: undefined,
};
const network = { name: "pods", bridge: "br-int", subnets: [cidr("10.1.0.0/24")], masquerade: true };
const cluster = {
  self: { name: "here" },
  linkAddresses: [cidr("192.168.1.2/24")],
  peers: new LiveValue(new Map()),
  tenants: { follow: () => undefined },
};
const optionsOf = (
  changes: {
    readonly ovs?: object;
    readonly network?: object;
    readonly nodes?: object;
    readonly services?: object;
  } = {},
  joined: object = cluster,
) => {
  const { ovs: own, network: net, nodes, services } = changes;
  const config = { ovs: { ...ovs, ...own }, networks: [{ ...network, ...net }], dataDir: "/data", nodes, services };
  const podOf = () => undefined;
  return ovsOptionsFromConfig({ config, podOf, cluster: joined } as never, logger);
};

describe("the data path on Open vSwitch is made", () => {
  test("with what the configuration and the cluster say", () => {
    expect(optionsOf()).toMatchObject({
      database: "unix:/db",
      kind: "netdev",
      network: "pods",
      bridge: "br-int",
      dataDir: "/data",
      podSubnets: network.subnets,
      masquerade: true,
      nodeName: "here",
      nodeAddresses: cluster.linkAddresses,
      serviceCidrs: ovs.services.cidrs,
      peers: cluster.peers,
      logger,
    });
    const balanced = { proxyAll: false, nodePortAddresses: [], cidrs: [cidr("10.97.0.0/16")] };
    expect(optionsOf({ services: balanced })).toMatchObject({ services: balanced, serviceCidrs: balanced.cidrs });
    const { mtu, tenants, services, clusterSubnets } = optionsOf();
    expect([mtu, tenants, services, clusterSubnets]).toEqual([undefined, undefined, undefined, undefined]);
    expect(optionsOf({ network: { mtu: 1400 } }).mtu).toBe(1400);
  });

  test("alone, where the node has joined no cluster", () => {
    const alone = ovsOptionsFromConfig(
      { config: { ovs, networks: [network], dataDir: "/data" }, podOf: () => undefined } as never,
      logger,
    );
    expect([alone.nodeName, alone.peers.current, alone.nodeAddresses]).toEqual([hostname(), new Map(), []]);
  });

  test("with the node's addresses as they are on its interfaces, else alone", () => {
    const [standing] = Object.values(networkInterfaces()).flatMap((entries = []) => entries);
    const ips = ["198.51.100.9", "2001:db8::9", standing?.address ?? "127.0.0.1"].map((text) => parseIp(text)!);
    const { nodeAddresses } = optionsOf({ ovs: { nodeAddresses: ips } });
    expect(nodeAddresses.map(formatCidr)).toEqual([
      "198.51.100.9/32",
      "2001:db8::9/128",
      standing?.cidr ?? "127.0.0.1/32",
    ]);
  });

  test("with the cluster's networks as the configuration has them, else as the registry leases them", () => {
    const nodes = { registry: { networks: [{ cidr: cidr("10.0.0.0/8") }] } };
    expect(optionsOf({ nodes }).clusterSubnets?.map(formatCidr)).toEqual(["10.0.0.0/8"]);
    const clusterSubnets = [cidr("172.16.0.0/12")];
    expect(optionsOf({ nodes, ovs: { clusterSubnets } }).clusterSubnets).toBe(clusterSubnets);
  });

  test("with projects apart where the registry keeps them, and not at all where it does not", () => {
    expect(optionsOf({ ovs: { multitenant: true } }).tenants).toBe(cluster.tenants);
    const { tenants: _, ...without } = cluster;
    expect(() => optionsOf({ ovs: { multitenant: true } }, without)).toThrow("the registry keeps no VNIDs");
  });

  test("not without a section about it", () => {
    const config = { networks: [network], dataDir: "/data" };
    expect(() => ovsOptionsFromConfig({ config, podOf: () => undefined } as never, logger)).toThrow('no section "ovs"');
    expect(() =>
      ovsOptionsFromConfig({ config: { ovs, networks: [] }, podOf: () => undefined } as never, logger),
    ).toThrow('"ovs"');
  });
});
