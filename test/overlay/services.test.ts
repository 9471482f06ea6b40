import { afterAll, beforeAll, expect, test } from "vitest";
import type { Endpoint, Service } from "../../agent/datapath/ovs/services/service.ts";
import { parseIp } from "../../shared/ip.ts";
import { describeWith } from "../support/requires.ts";
import { call, DatagramClient, NamedServer, tally } from "./named-server.ts";
import { gatewayAddress, nodeAddress, outside, ServiceNode } from "./service-node.ts";

const ip = (text: string) => parseIp(text)!;
const port = 8080;
const clusterIp = { 4: "10.96.0.10", 6: "fd00:96::10" } as const;

/** Three pods that serve, one that only asks. */
describeWith("services", ["root", "openvswitch", "nft"], () => {
  let node: ServiceNode;
  const servers = new DisposableStack();

  beforeAll(async () => {
    node = await ServiceNode.start(4);
    for (const i of [0, 1, 2]) servers.use(await NamedServer.start(node.pod(i).namespace, `pod${i}`, port));
    servers.use(await NamedServer.start(node.namespace, "node", port));
    servers.use(await NamedServer.start(node.outside, "outside", port));
  });
  afterAll(async () => {
    servers.dispose();
    await node?.[Symbol.asyncDispose]();
  });

  const to = (address: string, weight = 100): Endpoint => ({ ip: ip(address), port, weight });
  const service = (family: 4 | 6, endpoints: readonly Endpoint[], more: Partial<Service> = {}): Service => ({
    key: `default/web:${family}`,
    clusterIp: ip(clusterIp[family]),
    protocol: "tcp",
    port: 80,
    endpoints,
    ...more,
  });
  const client = () => node.pod(3).namespace;

  test.each([4, 6] as const)(
    "connections go to endpoints by their weight, from the client's own address: IPv%i",
    async (family) => {
      await node.serve(service(family, [to(node.pod(0)[family], 300), to(node.pod(1)[family], 100)]));
      expect(await call(client(), clusterIp[family], 80)).toMatchObject({ seenAs: node.pod(3)[family] });
      const found = await tally(200, () => call(client(), clusterIp[family], 80));
      expect(Object.keys(found).sort()).toEqual(["pod0", "pod1"]);
      // Of 200 by 3:1 fewer than 20, or more than 90, come once in a million times.
      expect(found["pod1"]).toBeGreaterThan(20);
      expect(found["pod1"]).toBeLessThan(90);
      expect(node.log).toEqual([]);
    },
  );

  test.each([4, 6] as const)("a pod reaches itself through its service: IPv%i", async (family) => {
    await node.serve(service(family, [to(node.pod(0)[family])]));
    expect(await call(node.pod(0).namespace, clusterIp[family], 80)).toEqual({
      name: "pod0",
      seenAs: gatewayAddress[family],
    });
  });

  test.each([4, 6] as const)(
    "the node reaches pods, itself and hosts outside through services: IPv%i",
    async (family) => {
      await node.serve(service(family, [to(node.pod(0)[family])]));
      expect(await call(node.namespace, clusterIp[family], 80)).toEqual({
        name: "pod0",
        seenAs: gatewayAddress[family],
      });
      await node.serve(service(family, [to(nodeAddress[family])]));
      expect(await call(node.namespace, clusterIp[family], 80)).toMatchObject({ name: "node" });
      await node.serve(service(family, [to(outside[family])]));
      expect(await call(node.namespace, clusterIp[family], 80)).toMatchObject({ name: "outside" });
    },
  );

  test.each([4, 6] as const)("pods reach the node and hosts outside through services: IPv%i", async (family) => {
    await node.serve(service(family, [to(nodeAddress[family])]));
    expect(await call(client(), clusterIp[family], 80)).toEqual({ name: "node", seenAs: node.pod(3)[family] });
    await node.serve(service(family, [to(outside[family])]));
    expect(await call(client(), clusterIp[family], 80)).toMatchObject({ name: "outside" });
  });

  test.each([4, 6] as const)("datagrams: IPv%i", async (family) => {
    await node.serve(service(family, [to(node.pod(0)[family]), to(node.pod(1)[family])], { protocol: "udp" }));
    using one = await DatagramClient.open(client(), family);
    const first = await one.ask(clusterIp[family], 80);
    expect(first).toMatchObject({ seenAs: node.pod(3)[family] });
    expect(await tally(5, () => one.ask(clusterIp[family], 80))).toEqual({ [first!.name]: 5 });
  });
});
