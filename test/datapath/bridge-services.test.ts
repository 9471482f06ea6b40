import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ServicePort } from "../../agent/datapath/services.ts";
import { DatagramClient } from "../overlay/named-server.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { cidr, ip } from "./bridge-fixture.ts";
import { addresses, endpoint, type Place, ServicedNode, service } from "./serviced-node.ts";

const vips = { 4: "10.96.0.1", 6: "fd96::1" } as const;
const externals = { 4: "203.0.113.1", 6: "2001:db8:3::1" } as const;
const ingresses = { 4: "203.0.113.2", 6: "2001:db8:3::2" } as const;
const nodePort = 30_080;
/** Longer than what a busy machine needs for a packet. */
const silentMs = 700;
const callers = ["a", "node", "outside"] as const;

/** With it the bridge itself translates what passes it; a kubelet's node has it. */
const settings = existsSync("/proc/sys/net/bridge") ? ([1, 0] as const) : ([0] as const);

describeWith("services of a kernel bridge", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let node: ServicedNode;

  beforeAll(async () => {
    const sandbox = stack.use(await NetworkSandbox.enter("pt-sv-"));
    node = stack.use(await ServicedNode.start(sandbox));
  });
  afterAll(() => stack.disposeAsync());

  describe.each([4, 6] as const)("IPv%i", (family) => {
    const vip = vips[family];
    const own = (place: keyof typeof addresses): string => addresses[place][family];
    /** Where the service is reached, beside its cluster IP. */
    const outerEntrances = {
      "external IP": [externals[family], 80],
      "load balancer's IP": [ingresses[family], 80],
      "node port": [own("node"), nodePort],
      "node port at the gateway": [own("gateway"), nodePort],
    } as const;
    const entrances = { "cluster IP": [vip, 80], ...outerEntrances } as const;
    const web = (targets: readonly (keyof typeof addresses)[], changes: Partial<ServicePort> = {}): ServicePort =>
      service(
        vip,
        targets.map((name) => endpoint(own(name))),
        { nodePort, externalIps: [ip(externals[family])], ingressIps: [ip(ingresses[family])], ...changes },
      );
    const endpoints = (...names: (keyof typeof addresses)[]) => names.map((name) => endpoint(own(name)));
    /** What becomes of calls to each of these entrances, from each of these places. */
    async function fates(
      from: readonly Place[],
      to: Readonly<Record<string, readonly [string, number]>>,
      patienceMs?: number,
    ): Promise<Record<string, string>> {
      const calls = from.flatMap((place) => Object.entries(to).map(([name, at]) => ({ place, name, at })));
      const found = calls.map(async ({ place, name, at: [address, port] }) => {
        return [`${place} to ${name}`, await node.fate(place, address, port, patienceMs)] as const;
      });
      return Object.fromEntries(await Promise.all(found));
    }
    const answering = (from: Place, at: keyof typeof entrances): Promise<string> =>
      node.answering(from, entrances[at][0], entrances[at][1]);
    const all = (from: readonly Place[], to: object, fate: string): Record<string, string> =>
      Object.fromEntries(from.flatMap((place) => Object.keys(to).map((name) => [`${place} to ${name}`, fate])));

    describe.each(settings)("bridge-nf-call-iptables %i", (setting) => {
      beforeAll(() => {
        if (settings.length > 1)
          node
            .at("node")
            .sysctl({ "bridge/bridge-nf-call-iptables": setting, "bridge/bridge-nf-call-ip6tables": setting });
      });

      test("each kind of address from pods, the node and outside, to endpoints everywhere", async () => {
        const [pod, gateway, self, stranger] = [own("a"), own("gateway"), own("node"), own("outside")];
        const table = {
          a: { a: `a sees ${gateway}`, node: `a sees ${gateway}`, outside: `a sees ${gateway}` },
          b: { a: `b sees ${pod}`, node: `b sees ${gateway}`, outside: `b sees ${gateway}` },
          node: { a: `node sees ${pod}`, node: `node sees ${self}`, outside: `node sees ${stranger}` },
          other: { a: `other sees ${pod}`, node: `other sees ${self}`, outside: `other sees ${self}` },
          remote: { a: `other sees ${pod}`, node: `other sees ${self}`, outside: `other sees ${self}` },
        };
        for (const [target, expected] of Object.entries(table)) {
          expect(await node.apply(web([target as keyof typeof table]))).toEqual([]);
          const wanted = callers.map((from) => all([from], entrances, expected[from]));
          // Who asks itself by an address does it with that address.
          if (target === "node") wanted.push({ "node to node port at the gateway": `node sees ${gateway}` });
          expect([target, await fates(callers, entrances)]).toEqual([target, Object.assign({}, ...wanted)]);
        }
      });

      test("nobody at all answers: whoever asks is told at once", async () => {
        await node.apply(web([]), web([], { key: "x/udp", protocol: "udp" }));
        expect(await fates(callers, entrances)).toEqual(all(callers, entrances, "refused"));
        for (const from of callers)
          for (const [name, [address, port]] of Object.entries(entrances))
            expect([from, name, await node.datagramFate(from, address, port)]).toEqual([from, name, "refused"]);
      });
    });

    test("endpoints share the calls", async () => {
      await node.apply(web(["a", "b", "other"]));
      for (const from of callers)
        for (const [address, port] of Object.values(entrances))
          expect(await node.answering(from, address, port)).toBe("a b other");
    });

    test("the client's address is kept where local endpoints alone answer to those outside", async () => {
      const local = web(["a", "b"], { external: endpoints("a"), keepsClient: true });
      await node.apply(local);
      expect(await fates(["outside"], outerEntrances)).toEqual(
        all(["outside"], outerEntrances, `a sees ${own("outside")}`),
      );
      // The cluster IP knows no such policy.
      for (const [from, at] of [
        ...callers.map((from) => [from, "cluster IP"] as const),
        ["a", "node port"],
        ["node", "external IP"],
      ] as const)
        expect(await answering(from, at)).toBe("a b");
      await node.apply({ ...local, external: [] });
      expect(await fates(["outside"], outerEntrances, silentMs)).toEqual(all(["outside"], outerEntrances, "silence"));
      expect(await answering("a", "node port")).toBe("a b");
      await node.apply({ ...local, internal: [] });
      expect(await node.fate("a", vip, 80, silentMs)).toBe("silence");
      expect(await answering("a", "external IP")).toBe("a b");
    });

    test("the load balancer's addresses are for its source ranges alone", async () => {
      const [theirs, pods] = family === 4 ? ["198.51.100.0/24", "10.77.0.0/24"] : ["2001:db8:2::/64", "fd77::/64"];
      const ingress = { "load balancer's IP": entrances["load balancer's IP"] };
      await node.apply(web(["b"], { sourceRanges: [cidr(theirs)] }));
      expect(await fates(callers, ingress, silentMs)).toEqual({
        ...all(["a", "node"], ingress, "silence"),
        ...all(["outside"], ingress, `b sees ${own("gateway")}`),
      });
      await node.apply(web(["b"], { sourceRanges: [cidr(pods)] }));
      expect(await node.fate("outside", ...entrances["load balancer's IP"], silentMs)).toBe("silence");
      expect(await node.fate("a", ...entrances["load balancer's IP"])).toBe(`b sees ${own("a")}`);
      expect(await node.fate("outside", ...entrances["external IP"])).toBe(`b sees ${own("gateway")}`);
    });

    test("node ports are not those of loopback, and only of addresses that the configuration names", async () => {
      await node.apply(web(["a"]));
      expect(await node.fate("node", family === 4 ? "127.0.0.1" : "::1", nodePort)).toBe("refused");
      await node.restart({ proxyAll: true, nodePortAddresses: [cidr("10.77.0.0/24"), cidr("fd77::/64")] });
      await node.apply(web(["a"]));
      expect(await node.fate("outside", ...entrances["node port"])).toBe("refused");
      expect(await node.fate("outside", ...entrances["node port at the gateway"])).toBe(`a sees ${own("gateway")}`);
      await node.restart();
    });

    test("for pods alone: node ports are nobody's", async () => {
      await node.restart({ proxyAll: false, nodePortAddresses: [] });
      expect(await node.apply(web(["b"]))).toEqual([]);
      expect(await node.fate("a", vip, 80)).toBe(`b sees ${own("a")}`);
      expect(await node.fate("a", ...entrances["node port"])).toBe("refused");
      expect(await node.fate("outside", ...entrances["node port"])).toBe("refused");
      await node.restart();
    });

    test("a client keeps its endpoint as long as that answers", async () => {
      const sticky = (...names: ("a" | "b" | "other")[]) => web(names, { affinitySeconds: 300 });
      await node.apply(sticky("a", "b", "other"));
      for (const from of callers)
        for (const [address, port] of Object.values(entrances)) {
          await node.apply(sticky("a", "b", "other"));
          const first = await node.answering(from, address, port);
          expect(["a", "b", "other"]).toContain(first);
          await node.apply(sticky(...(["a", "b", "other"] as const).filter((name) => name !== first)));
          const next = await node.answering(from, address, port);
          expect(["a", "b", "other"].filter((name) => name !== first)).toContain(next);
        }
    });

    test("a client that has kept an endpoint elsewhere is led to those of this node once the policy is Local", async () => {
      const sticky = { affinitySeconds: 300 };
      const outside = ["external IP", "node port"] as const;
      await node.apply(web(["other"], sticky));
      for (const to of outside) expect(await answering("outside", to)).toBe("other");
      const [local, elsewhere] = [web(["b"]).cluster, web(["other"]).cluster];
      await node.apply(web(["other", "b"], { ...sticky, keepsClient: true, external: local }));
      for (const to of outside) expect([to, await answering("outside", to)]).toEqual([to, "b"]);
      await node.apply(web(["other"], { ...sticky, external: elsewhere }));
      for (const to of outside) expect([to, await answering("outside", to)]).toEqual([to, "other"]);
    });

    test("datagrams go on from one port when the first endpoint comes, and when theirs goes", async () => {
      const dns = (...names: (keyof typeof addresses)[]) => web(names, { protocol: "udp" });
      await node.apply(dns());
      const clients = await Promise.all(callers.map((from) => DatagramClient.open(node.at(from), family)));
      using held = new DisposableStack();
      for (const client of clients) held.use(client);
      for (const to of ["cluster IP", "node port", "external IP"] as const) {
        const [address, port] = entrances[to];
        const ask = () => Promise.all(clients.map(async (client) => (await client.ask(address, port, silentMs))?.name));
        if (to === "cluster IP") expect(await ask()).toEqual([undefined, undefined, undefined]);
        for (const name of ["b", "other", "b"] as const) {
          await node.apply(dns(name));
          expect([to, await ask()]).toEqual([to, [name, name, name]]);
        }
      }
    });
  });
});
