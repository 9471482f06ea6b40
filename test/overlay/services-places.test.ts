import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Endpoint, ServicePort } from "../../agent/datapath/services.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { type Family, parseCidr } from "../../shared/net/ip.ts";
import { endpointAt, servicePort } from "../fakes/service-port.ts";
import { eventually } from "../support/agent-process.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { Conversation } from "./lab/conversation.ts";
import { call, DatagramClient, NamedServer, tally } from "./named-server.ts";
import { type Client, clients, outcomeOf, places, randomServices } from "./service-model.ts";
import { gatewayAddress, nodeAddress, outside, ServiceNode } from "./service-node.ts";
import { addressOf, greeting, namespaceOf, seenAs, worldOf } from "./service-places.ts";

const port = 8080;
const nodePort = 30_080;
/** Longer than what a busy machine needs for a packet. */
const silentMs = 700;
const at = {
  4: { clusterIp: "10.96.0.10", externalIps: ["203.0.113.1"], ingressIps: ["203.0.113.2"] },
  6: { clusterIp: "fd00:96::10", externalIps: ["fd00:113::1"], ingressIps: ["fd00:113::2"] },
} as const;

/** Three pods that serve and one that asks; the node and a host beyond it do both. */
describeWith("services for pods, the node and others", ["root", "openvswitch", "nft"], () => {
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

  const pod = (i: number, family: Family): Endpoint => endpointAt(node.pod(i)[family], port, 100, true);
  const everywhere = (family: Family, changes: Parameters<typeof servicePort>[0] = {}): ServicePort =>
    servicePort({ key: `default/web:${family}`, nodePort, ...at[family], ...changes });
  const ask = (client: Client, service: ServicePort, place: (typeof places)[number], patienceMs?: number) =>
    call(namespaceOf(node, client), ...addressOf(service, place), patienceMs);
  const outsideIs = (family: Family, i: number) => ask("outside", everywhere(family), places[i] ?? "nodePort");

  describe.each([4, 6] as const)("IPv%i", (family) => {
    beforeEach(async () => {
      expect(await node.serve()).toEqual([]);
    });

    test("a pod answers at every address, and sees who asks", async () => {
      const service = everywhere(family, { endpoints: [pod(0, family)] });
      expect(await node.serve(service)).toEqual([]);
      for (const client of clients)
        for (const place of client === "outside" ? places.slice(1) : places)
          expect([client, place, await ask(client, service, place)]).toEqual([
            client,
            place,
            { name: "pod0", seenAs: seenAs(node, client, family) },
          ]);
      // And itself, as somebody else.
      for (const place of places)
        expect(await call(node.pod(0).namespace, ...addressOf(service, place))).toEqual({
          name: "pod0",
          seenAs: gatewayAddress[family],
        });
    });

    test("the node itself and hosts elsewhere answer at every address", async () => {
      for (const [name, address] of [
        ["node", nodeAddress[family]],
        ["outside", outside[family]],
      ] as const) {
        const service = everywhere(family, { endpoints: [endpointAt(address, port)] });
        await node.serve(service);
        for (const client of clients)
          for (const place of client === "outside" ? places.slice(1) : places)
            expect([client, place, (await ask(client, service, place))?.name]).toEqual([client, place, name]);
      }
    });

    test("others reach local endpoints alone where a policy says so, and pods and the node all", async () => {
      const [near, other] = [pod(0, family), pod(1, family)];
      const local = everywhere(family, { endpoints: [near, other], external: [near], keepsClient: true });
      await node.serve(local);
      const seen = { name: "pod0", seenAs: outside[family] };
      for (const place of places.slice(1)) {
        for (let i = 0; i < 10; i++) expect(await ask("outside", local, place)).toEqual(seen);
        for (const client of ["pod", "node"] as const)
          expect(Object.keys(await tally(40, () => ask(client, local, place))).sort()).toEqual(["pod0", "pod1"]);
      }
      await node.serve({ ...local, external: [] });
      for (const place of places.slice(1)) expect(await ask("outside", local, place, silentMs)).toBeUndefined();
      expect((await ask("pod", local, "nodePort"))?.name).toMatch(/^pod/);
      await node.serve({ ...local, internal: [] });
      expect(await ask("pod", local, "clusterIp", silentMs)).toBeUndefined();
      expect((await ask("pod", local, "external"))?.name).toMatch(/^pod/);
    });

    test("the load balancer's addresses are for its source ranges alone", async () => {
      const block = (text: string) => [parseCidr(text)!];
      const [theirs, pods] = family === 4 ? ["198.51.100.0/24", "10.10.1.0/24"] : ["fd00:51::/64", "fd00:10:1::/64"];
      const service = everywhere(family, { endpoints: [pod(0, family)], sourceRanges: block(theirs) });
      await node.serve(service);
      expect(await outsideIs(family, 2)).toMatchObject({ name: "pod0" });
      for (const client of ["pod", "node"] as const)
        expect(await ask(client, service, "ingress", silentMs)).toBeUndefined();
      await node.serve({ ...service, sourceRanges: block(pods) });
      expect(await ask("outside", service, "ingress", silentMs)).toBeUndefined();
      expect(await ask("pod", service, "ingress")).toMatchObject({ name: "pod0" });
      expect(await ask("outside", service, "external")).toMatchObject({ name: "pod0" });
    });

    test("whoever asks a service without endpoints is told at once, and answered once there is one", async () => {
      const service = everywhere(family);
      await node.serve(service);
      for (const client of clients)
        for (const place of client === "outside" ? places.slice(1) : places)
          expect([client, place, await greeting(namespaceOf(node, client), addressOf(service, place), 5_000)]).toEqual([
            client,
            place,
            "refused",
          ]);
      await node.serve(everywhere(family, { endpoints: [pod(0, family)] }));
      for (const client of clients) expect(await ask(client, service, "nodePort")).toMatchObject({ name: "pod0" });
    });

    test("datagrams go on from one port when the first endpoint comes, and when theirs goes", async () => {
      const dns = (endpoints: readonly Endpoint[]) => everywhere(family, { protocol: "udp", endpoints });
      await node.serve(dns([]));
      using fromPod = await DatagramClient.open(namespaceOf(node, "pod"), family);
      using fromOutside = await DatagramClient.open(namespaceOf(node, "outside"), family);
      const asks = {
        pod: () => fromPod.ask(...addressOf(dns([]), "clusterIp"), silentMs),
        outside: () => fromOutside.ask(...addressOf(dns([]), "nodePort"), silentMs),
      };
      for (const one of Object.values(asks)) expect(await one()).toBeUndefined();
      for (const i of [0, 1]) {
        await node.serve(dns([pod(i, family)]));
        for (const [who, one] of Object.entries(asks))
          await eventually(async () => (await one())?.name === `pod${i}`, `pod${i} to answer from ${who}`);
      }
      expect(node.log).toEqual([]);
    });

    test("a client from outside keeps its endpoint at a node port", async () => {
      const all = [0, 1, 2].map((i) => pod(i, family));
      const sticky = everywhere(family, { endpoints: all, affinitySeconds: 300 });
      await node.serve(sticky);
      const own = (await ask("outside", sticky, "nodePort"))?.name ?? "";
      expect(await tally(10, () => ask("outside", sticky, "nodePort"))).toEqual({ [own]: 10 });
      await node.serve(
        everywhere(family, { endpoints: all.filter((_, i) => `pod${i}` !== own), affinitySeconds: 300 }),
      );
      const next = (await ask("outside", sticky, "nodePort"))?.name ?? "";
      expect(next).not.toBe(own);
      expect(await tally(10, () => ask("outside", sticky, "nodePort"))).toEqual({ [next]: 10 });
    });

    test("open connections outlive changes and the agent, which has the earlier services answer until it knows its own", async () => {
      const talk = 7_171;
      const talking = everywhere(family, { nodePort: talk, endpoints: [endpointAt(node.pod(0)[family], talk)] });
      const web = everywhere(family, { key: "web", clusterIp: family === 4 ? "10.96.0.11" : "fd00:96::11", port: 81 });
      await node.serve(talking, {
        ...web,
        nodePort: nodePort + 1,
        internal: [pod(1, family)],
        cluster: [pod(1, family)],
      });
      using held = await Conversation.start(node.outside, node.pod(0).namespace, nodeAddress[family], talk);
      await node.serve(talking);
      await held.goesOn();
      await node.startAgent(undefined, "until it is told");
      await held.goesOn();
      using during = await Conversation.start(node.pod(1).namespace, node.pod(2).namespace, node.pod(2)[family], 7_272);
      expect(await greeting(node.outside, [nodeAddress[family], talk], 5_000)).toBe("answered");
      await node.serve(talking);
      await held.goesOn();
      await during.goesOn();
      await node.serve();
      expect(await greeting(node.outside, [nodeAddress[family], talk], silentMs)).not.toBe("answered");
    });

    test("policies judge by the endpoint and by the client's own address", async () => {
      const policy = { namespace: "default", name: "p", uid: "u" };
      const service = everywhere(family, { endpoints: [pod(0, family)] });
      await node.serve(service);
      const target = node.pod(0).owner;
      const asking = node.pod(3).owner;
      const ports = [{ protocol: "TCP", first: port }] as const;
      const width = family === 4 ? 32 : 128;
      const block = (text: string) => ({
        sets: [],
        blocks: [{ t: "block", cidr: parseCidr(`${text}/${width}`)!, except: [] }] as const,
      });
      const enforce = async (sender: string, receiver: string): Promise<void> => {
        const rules = [
          { id: "in", policy, direction: "ingress", targets: [target], peers: block(sender), ports },
          { id: "out", policy, direction: "egress", targets: [asking], peers: block(receiver), ports },
        ] as const;
        await node.policies.enforce({
          rules: new Map(rules.map((rule) => [rule.id, rule])) as never,
          isolated: new Map([
            [ownerKey(target), { owner: target, directions: ["ingress"], by: [policy] }],
            [ownerKey(asking), { owner: asking, directions: ["egress"], by: [policy] }],
          ]),
        });
      };
      await enforce(outside[family], node.pod(0)[family]);
      expect(await ask("outside", service, "nodePort")).toMatchObject({ name: "pod0" });
      expect(await ask("pod", service, "nodePort", silentMs)).toBeUndefined();
      await enforce(node.pod(3)[family], node.pod(0)[family]);
      expect(await ask("outside", service, "nodePort", silentMs)).toBeUndefined();
      for (const place of places) expect(await ask("pod", service, place)).toMatchObject({ name: "pod0" });
      await enforce(node.pod(3)[family], nodeAddress[family]);
      expect(await ask("pod", service, "nodePort", silentMs)).toBeUndefined();
      await node.policies.enforce({ rules: new Map(), isolated: new Map() });
    });
  });

  test("random services do what a model says, all at once", { timeout: 300_000 }, async () => {
    const below = random(20_611);
    const world = worldOf(node);
    const services = randomServices(200, below, world);
    expect(await node.serve(...services)).toEqual([]);
    const names = new Map<string, string>(
      ([4, 6] as const).flatMap((family) => [
        [node.pod(0)[family], "pod0"],
        [node.pod(1)[family], "pod1"],
        [nodeAddress[family], "node"],
        [outside[family], "outside"],
      ]),
    );
    const wrong: unknown[] = [];
    const question = async (service: ServicePort): Promise<void> => {
      for (const client of clients) {
        const place = places[client === "outside" ? 1 + below(3) : below(4)] ?? "nodePort";
        const outcome = outcomeOf(world, service, place, client);
        const address = addressOf(service, place);
        const answer =
          outcome.t === "one of"
            ? (await call(namespaceOf(node, client), ...address))?.name
            : await greeting(namespaceOf(node, client), address, outcome.t === "refused" ? 5_000 : silentMs);
        const right = outcome.t === "one of" ? outcome.ips.map((ip) => names.get(ip)) : outcome.t.split(" or ");
        if (!right.includes(answer)) wrong.push({ key: service.key, client, place, address, outcome, answer });
      }
    };
    for (let i = 0; i < services.length; i += 20) await Promise.all(services.slice(i, i + 20).map(question));
    expect(wrong).toEqual([]);
  });
});
