import { afterAll, beforeAll, expect, test } from "vitest";
import type { Endpoint, ServicePort } from "../../agent/datapath/services.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { endpointAt, servicePort } from "../fakes/service-port.ts";
import { eventually } from "../support/agent-process.ts";
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

  const to = (address: string, weight = 100): Endpoint => endpointAt(address, port, weight);
  const service = (family: 4 | 6, endpoints: readonly Endpoint[], more: Partial<ServicePort> = {}): ServicePort => ({
    ...servicePort({ key: `default/web:${family}`, clusterIp: clusterIp[family], endpoints }),
    ...more,
  });
  const answeredBy = (all: ServicePort, endpoints: readonly Endpoint[]): ServicePort => ({
    ...all,
    internal: endpoints,
    external: endpoints,
    cluster: endpoints,
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

  test("an endpoint that has gone gets no new connection, and a service without any none at all", async () => {
    const [first, second] = [node.pod(0)[4], node.pod(1)[4]];
    await node.serve(service(4, [to(first), to(second)]));
    expect(Object.keys(await tally(40, () => call(client(), clusterIp[4], 80))).sort()).toEqual(["pod0", "pod1"]);
    await node.serve(service(4, [to(second)]));
    expect(await tally(40, () => call(client(), clusterIp[4], 80))).toEqual({ pod1: 40 });
    await node.serve(service(4, []));
    expect(await call(client(), clusterIp[4], 80, 500)).toBeUndefined();
    expect(await call(node.namespace, clusterIp[4], 80, 500)).toBeUndefined();
    // Nor has one a port or an address that nobody has said.
    await node.serve(service(4, [to(first)]));
    expect(await call(client(), clusterIp[4], 81, 500)).toBeUndefined();
    expect(await call(client(), "10.96.77.77", 80, 500)).toBeUndefined();
    expect(await call(client(), clusterIp[4], 80)).toMatchObject({ name: "pod0" });
  });

  test("services take each other's addresses in one step", async () => {
    const other = { ...service(4, [to(node.pod(1)[4])], { key: "default/other:4", clusterIp: ip("10.96.0.11") }) };
    const one = service(4, [to(node.pod(0)[4])]);
    await node.serve(one, other);
    expect(await call(client(), "10.96.0.11", 80)).toMatchObject({ name: "pod1" });
    await node.serve({ ...one, clusterIp: other.clusterIp }, { ...other, clusterIp: one.clusterIp });
    expect(await call(client(), "10.96.0.11", 80)).toMatchObject({ name: "pod0" });
    expect(await call(client(), "10.96.0.10", 80)).toMatchObject({ name: "pod1" });
    await node.serve(one);
    expect(await call(client(), "10.96.0.11", 80, 500)).toBeUndefined();
    expect(node.log).toEqual([]);
  });

  const remembered = async (): Promise<string[]> =>
    (await node.ofctl("dump-flows", "--no-stats", "table=100")).filter((line) => line.includes("priority=200"));

  test.each([4, 6] as const)(
    "a client keeps its endpoint, also while the agent starts again: IPv%i",
    async (family) => {
      const all = [0, 1, 2].map((i) => to(node.pod(i)[family]));
      const sticky = service(family, all, { affinitySeconds: 300 });
      // Has the same endpoints, and is to mean nothing for the other.
      const loose = { ...service(family, all), key: "default/loose", port: 81 };
      await node.serve(sticky, loose);
      const own = (await call(client(), clusterIp[family], 80))!.name;
      expect(await tally(20, () => call(client(), clusterIp[family], 80))).toEqual({ [own]: 20 });
      expect(Object.keys(await tally(60, () => call(client(), clusterIp[family], 81)))).toHaveLength(3);
      expect(await remembered()).toHaveLength(1);
      await node.startAgent();
      expect(await remembered()).toHaveLength(1);
      expect(await tally(20, () => call(client(), clusterIp[family], 80))).toEqual({ [own]: 20 });
      // Others come, among which it would have another one were it new.
      const others = Array.from({ length: 60 }, (_, i) =>
        to(family === 4 ? `10.10.1.${100 + i}` : `fd00:10:1::${100 + i}`),
      );
      await node.serve(answeredBy(sticky, [...all, ...others]), loose);
      expect(await tally(5, () => call(client(), clusterIp[family], 80))).toEqual({ [own]: 5 });
      // Its endpoint leaves the service, and stays in the other.
      const left = all.filter((_, i) => `pod${i}` !== own);
      await node.serve(answeredBy(sticky, left), loose);
      const next = (await call(client(), clusterIp[family], 80))!.name;
      expect(next).not.toBe(own);
      expect(await tally(20, () => call(client(), clusterIp[family], 80))).toEqual({ [next]: 20 });
      await node.serve(loose);
      expect(await remembered()).toEqual([]);
    },
  );

  test("connections of one client in the same moment have one endpoint, though each is the first", async () => {
    const all = [0, 1, 2].map((i) => to(node.pod(i)[4]));
    for (let round = 0; round < 5; round++) {
      const seconds = 100 + round;
      await node.serve(service(4, all, { key: `default/round${round}`, affinitySeconds: seconds }));
      const answers = await Promise.all(Array.from({ length: 20 }, () => call(client(), clusterIp[4], 80)));
      expect(new Set(answers.map((answer) => answer?.name)).size).toBe(1);
    }
  });

  test("a client's endpoint is forgotten when its time is up", async () => {
    const all = [0, 1, 2].map((i) => to(node.pod(i)[4]));
    await node.serve(service(4, all, { affinitySeconds: 1 }));
    expect(await call(client(), clusterIp[4], 80)).toBeDefined();
    // Who sends from addresses that he makes up does not fill the switch.
    expect((await node.ofctl("dump-flows", "table=110")).join()).toContain(",limit=20000,");
    await eventually(async () => (await remembered()).length === 0, "the end of the remembered flow");
    await node.serve(service(4, all, { affinitySeconds: 300 }));
    expect(await call(client(), clusterIp[4], 80)).toBeDefined();
    await Bun.sleep(2_000);
    expect(await remembered()).toHaveLength(1);
  });

  test.each([4, 6] as const)(
    "datagrams of one client do not stay with an endpoint that has gone: IPv%i",
    async (family) => {
      const both = [to(node.pod(0)[family]), to(node.pod(1)[family])];
      const dns = service(family, both, { protocol: "udp" });
      await node.serve(dns);
      using one = await DatagramClient.open(client(), family);
      const own = (await one.ask(clusterIp[family], 80))!.name;
      await node.serve(
        answeredBy(
          dns,
          both.filter((_, i) => `pod${i}` !== own),
        ),
      );
      // Open connections are not torn off at once: it is still the old one that answers.
      await eventually(async () => (await one.ask(clusterIp[family], 80))?.name !== own, "the endpoint that is left");
      expect(node.log).toEqual([]);
    },
  );

  test("SCTP is translated as the others are, as far as the switch's own account of it says", async () => {
    await node.serve(service(4, [to(node.pod(0)[4])], { protocol: "sctp" }));
    const packet = `sctp,in_port=13,dl_src=0a:00:0a:0a:01:05,dl_dst=0e:00:0a:0a:01:01,nw_src=${node.pod(3)[4]}`;
    const text = await node.vswitch.run(
      ...(["ovs-appctl", "-t", node.vswitch.control, "ofproto/trace", "br-int"] as const),
      `${packet},nw_dst=${clusterIp[4]},nw_ttl=64,sctp_src=7,sctp_dst=80,dp_hash=5`,
    );
    expect(text).toContain(`nat(dst=${node.pod(0)[4]}:${port})`);
  });

  test("without its group, or the flow that translates, a service does not answer", async () => {
    await node.serve(service(4, [to(node.pod(0)[4])]));
    expect(await call(client(), clusterIp[4], 80)).toMatchObject({ name: "pod0" });
    // The switch works by what it has cached until it has looked at its flows again.
    const isSilent = async (): Promise<boolean> => (await call(client(), clusterIp[4], 80, 500)) === undefined;
    await node.ofctl("del-flows", "table=120,tcp,reg4=0x21f90/0x7ffff");
    await eventually(isSilent, "the switch, which has no flow any more");
    await node.startAgent();
    expect(await call(client(), clusterIp[4], 80)).toMatchObject({ name: "pod0" });
    await node.ofctl("del-groups");
    await eventually(isSilent, "the switch, which has no group any more");
  });
});
