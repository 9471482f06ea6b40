import { describe, expect, test } from "vitest";
import { LiveValue } from "../../../shared/async/live-value.ts";
import { createLogger } from "../../../shared/log.ts";
import { type Cidr, formatCidr, formatIp, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { NodeInMemory } from "../../../test/fakes/netlink/kernel.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import { addRoute, Errno, listRoutes, type NetlinkSocket, readRoute } from "../../protocols/netlink/mod.ts";
import { OtherNodes } from "./other-nodes.ts";

const cidr = (text: string): Cidr => parseCidr(text)!;
const peer = (name: string, address: string, ...subnets: readonly string[]): ClusterNode => ({
  name,
  uid: name,
  addresses: [parseIp(address)!],
  subnets: subnets.map(cidr),
});

function clusterWith(first: readonly ClusterNode[] | undefined, networks?: readonly Cidr[]) {
  const node = new NodeInMemory();
  const uplink = node.own.add({ name: "eth0", up: true });
  node.own.addresses.push({ index: uplink.index, family: 2, prefix: 24, ip: Uint8Array.of(192, 168, 1, 2) });
  const socket = node.socketIn(node.own) as unknown as NetlinkSocket;
  const toMap = (all: readonly ClusterNode[]) => new Map(all.map((each) => [each.name, each]));
  const peers = new LiveValue<ReadonlyMap<string, ClusterNode>>(first && toMap(first));
  let rules = 0;
  const others = new OtherNodes({
    cluster: {
      network: "pods",
      nodeAddresses: [cidr("192.168.1.2/24")],
      peers,
      ...(networks === undefined ? {} : { networks }),
    },
    socket,
    setRules: async () => void rules++,
    logger: createLogger("error", () => undefined),
  });
  const routes = (): readonly string[] =>
    ([4, 6] as const).flatMap((family) =>
      socket
        .dump(listRoutes(family), readRoute)
        .map(({ dst, hops: [hop] }) => `${formatCidr(dst)} via ${hop?.gateway && formatIp(hop.gateway)}`),
    );
  return {
    node,
    socket,
    others,
    routes,
    set: (all: readonly ClusterNode[]) => peers.set(toMap(all)),
    rules: () => rules,
  };
}

const near = peer("near", "192.168.1.3", "10.1.3.0/24");
const far = peer("far", "192.168.9.9", "10.1.9.0/24");

describe("other nodes' pods", () => {
  test("are reached by way of their nodes on the link, and follow the registry", async () => {
    const cluster = clusterWith([near]);
    await using others = cluster.others;
    await others.start();
    expect(cluster.rules()).toBe(1);
    expect(cluster.routes()).toEqual(["10.1.3.0/24 via 192.168.1.3"]);
    expect(others.shortcomings()).toEqual([]);
    cluster.set([peer("near", "192.168.1.4", "10.1.3.0/24")]);
    await expect.poll(() => cluster.routes()).toEqual(["10.1.3.0/24 via 192.168.1.4"]);
    cluster.set([]);
    await expect.poll(() => cluster.routes()).toEqual([]);
  });

  test("stay reached as an earlier agent left it, until the registry tells of them", async () => {
    const cluster = clusterWith(undefined);
    const earlier = cidr("10.1.3.0/24");
    cluster.socket.run(addRoute({ dst: earlier, gateway: parseIp("192.168.1.3")!, protocol: 0x70 }));
    await using others = cluster.others;
    await others.start();
    expect(cluster.routes()).toEqual(["10.1.3.0/24 via 192.168.1.3"]);
    cluster.set([]);
    await expect.poll(() => cluster.routes()).toEqual([]);
  });

  test("that somebody has taken the routes to come back when it is said", async () => {
    const cluster = clusterWith([near]);
    await using others = cluster.others;
    await others.start();
    cluster.node.own.routes = [];
    others.trigger();
    await expect.poll(() => cluster.routes()).toHaveLength(1);
  });

  test("of an end are followed no more, and the routes stay", async () => {
    const cluster = clusterWith([near]);
    await cluster.others.start();
    await cluster.others[Symbol.asyncDispose]();
    cluster.set([]);
    await Promise.resolve();
    expect(cluster.routes()).toHaveLength(1);
  });

  test("whose routes the kernel refuses are named, and keep none from being made", async () => {
    const cluster = clusterWith([near, peer("next", "192.168.1.5", "10.1.5.0/24")]);
    await using others = cluster.others;
    cluster.node.before = (action) => {
      if (action === 'add the route to "10.1.3.0/24"') throw new Refusal(Errno.EINVAL);
    };
    await others.start().catch(() => undefined);
    expect(cluster.routes()).toEqual(["10.1.5.0/24 via 192.168.1.5"]);
    expect(others.shortcomings()).toEqual([expect.stringContaining("10.1.3.0/24")]);
  });

  test("go unhidden: all of the registry's networks, else those of the nodes, and of the shared network alone", () => {
    const subnets = (all: readonly Cidr[]) => all.map(formatCidr);
    const { others } = clusterWith([near, far]);
    expect(subnets(others.exempt("pods"))).toEqual(["10.1.3.0/24", "10.1.9.0/24"]);
    expect(others.exempt("alone")).toEqual([]);
    expect(subnets(clusterWith([near], [cidr("10.0.0.0/8")]).others.exempt("pods"))).toEqual(["10.0.0.0/8"]);
    const none = new OtherNodes({
      cluster: { network: "pods", nodeAddresses: [], peers: new LiveValue() },
      socket: undefined as never,
      setRules: async () => undefined,
      logger: createLogger("error", () => undefined),
    });
    expect(none.exempt("pods")).toEqual([]);
  });
});

describe("nodes behind a router", () => {
  test("are named with their subnets, where nobody has made a route to them", async () => {
    const cluster = clusterWith([near, far]);
    await using others = cluster.others;
    await others.start();
    expect(cluster.routes()).toEqual(["10.1.3.0/24 via 192.168.1.3"]);
    expect(others.shortcomings()).toEqual([
      expect.stringMatching(/^Cannot set routes to the pods of "far" \(10\.1\.9\.0\/24\): this node shares no link/),
    ]);
  });

  test.each([
    ["a route to the very subnet", "10.1.9.0/24", undefined, true],
    ["a route to a larger block", "10.1.0.0/16", undefined, true],
    ["a route to a part of it", "10.1.9.0/25", undefined, false],
    ["a route to another", "10.1.8.0/24", undefined, false],
    ["the default route", "0.0.0.0/0", undefined, false],
  ] as const)("are known by %s: %s", async (_name, dst, protocol, isKnown) => {
    const cluster = clusterWith([near, far]);
    await using others = cluster.others;
    await others.start();
    cluster.socket.run(addRoute({ dst: cidr(dst), gateway: parseIp("192.168.1.1")!, protocol }));
    expect(others.shortcomings()).toHaveLength(isKnown ? 0 : 1);
  });

  test("are not known by a stale route of ours, nor by one that leads to half of their subnets", async () => {
    const cluster = clusterWith([peer("far", "192.168.9.9", "10.1.9.0/24", "fd09::/64")]);
    await using others = cluster.others;
    await others.start();
    cluster.socket.run(addRoute({ dst: cidr("10.1.0.0/16"), gateway: parseIp("192.168.1.1")!, protocol: 0x70 }));
    cluster.socket.run(addRoute({ dst: cidr("10.1.9.0/24"), gateway: parseIp("192.168.1.1")! }));
    expect(others.shortcomings()).toHaveLength(1);
    cluster.node.own.routes.pop();
    cluster.node.own.routes.pop();
    cluster.socket.run(addRoute({ dst: cidr("fd00::/8"), index: 2 }));
    expect(others.shortcomings()).toEqual([expect.stringContaining('"far" (10.1.9.0/24, fd09::/64)')]);
  });

  test.each([
    [5, ""],
    [6, " and 1 more nodes"],
    [8, " and 3 more nodes"],
  ])("are named up to five: %i", async (count, more) => {
    const all = Array.from({ length: count }, (_, i) => peer(`n${i}`, `192.168.9.${i + 3}`, `10.1.${i + 3}.0/24`));
    const cluster = clusterWith(all);
    await using others = cluster.others;
    await others.start();
    const [said = ""] = others.shortcomings();
    expect([...said.matchAll(/"n\d"/g)]).toHaveLength(5);
    expect(said).toContain(`"n4" (10.1.7.0/24)${more}: this node`);
  });
});
