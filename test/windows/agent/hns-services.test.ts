import { afterEach, beforeEach, expect, test } from "vitest";
import type { Fault } from "../../fakes/hns/faults.ts";
import { whereTo } from "../../fakes/hns/load-balancers.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { addressesOf, WindowsNode } from "./windows-node.ts";

const file = "C:\\services.json";
const here = "10.9.0.2";
const elsewhere = ["10.9.1.9", "10.9.1.10"] as const;
type Elsewhere = (typeof elsewhere)[number];

describeWine("services on HNS, with the compiled agent", (wine) => {
  let node: WindowsNode;
  beforeEach(async () => {
    node = await WindowsNode.make(wine.prefix);
  });
  afterEach(() => node[Symbol.asyncDispose]());

  const start = (network: Readonly<Record<string, unknown>> = { type: "L2Bridge" }, hnsTimeoutMs = 1_000) =>
    node.start(network, { services: { from: "file", file }, hnsTimeoutMs });

  /** Who serves 10.96.0.10, by the file; replaced as a whole, so that no half of it is read. */
  function write(...ips: readonly string[]): void {
    const endpoints = ips.map((ip) => ({ ip, port: 8080 }));
    const web = { name: "default/web:http", clusterIp: "10.96.0.10", protocol: "tcp", port: 80, endpoints };
    wine.prefix.write(file, JSON.stringify({ services: [web] }));
  }

  const store = () => node.stubs.hns.store;
  /** Where connections to the service go, each place once. */
  function places(): readonly string[] {
    const found = Array.from({ length: 32 }, (_, i) => {
      const packet = { from: "10.9.0.77", fromPort: 40_000 + i, to: "10.96.0.10", port: 80, protocol: "tcp" } as const;
      const to = whereTo(store(), packet, ["192.168.1.5"]);
      return to === undefined ? "nowhere" : `${to.to}:${to.port}`;
    });
    return [...new Set(found)].sort();
  }
  const goesTo = (...ips: readonly string[]): Promise<void> =>
    expect.poll(places, { timeout: 30_000 }).toEqual(ips.map((ip) => `${ip}:8080`).sort());
  const remotes = (): readonly string[] =>
    node
      .endpoints()
      .filter(({ Flags }) => Flags === 1)
      .flatMap(addressesOf);
  /** One load balancer, and no other node's pod but this. */
  const isClean = (ip: string): Promise<void> =>
    expect.poll(() => [store().loadBalancers.size, remotes()], { timeout: 30_000 }).toEqual([1, [ip]]);

  test("lead to pods here and elsewhere, follow the file, and stay as they are when the agent starts again", async () => {
    write(here, elsewhere[0]);
    await start();
    await goesTo(elsewhere[0]);
    const netns = node.stubs.hns.newNamespace();
    expect((await node.cni("ADD", "a", { netns })).t).toBe("ok");
    await goesTo(here, elsewhere[0]);
    const [pod] = node.endpoints().filter(({ HostComputeNamespace }) => HostComputeNamespace !== "");
    // With direct server return it reaches itself through the service by this.
    expect(pod?.["Policies"]).toEqual([{ Type: "OutBoundNAT", Settings: { Destinations: [here] } }]);
    write(here, elsewhere[1]);
    await goesTo(here, elsewhere[1]);
    await isClean(elsewhere[1]);

    await node.stop();
    expect(places()).toHaveLength(2);
    const before = [...store().loadBalancers.keys(), ...store().endpoints.keys()];
    node.stubs.hns.calls.length = 0;
    await start();
    expect((await node.cni("DEL", "b")).t).toBe("ok");
    expect([...store().loadBalancers.keys(), ...store().endpoints.keys()]).toEqual(before);
    const called = new Set(node.stubs.hns.calls.map(({ fn }) => fn));
    expect([...called].filter((fn) => /^Hcn(Create|Modify|Delete)/.test(fn))).toEqual([]);

    await node.stop();
    await node.start({ type: "L2Bridge" });
    expect([places(), store().loadBalancers.size, remotes()]).toEqual([["nowhere"], 0, []]);
    await node.cni("DEL", "a", { netns });
  });

  const mishaps: readonly (readonly [name: string, fault: Omit<Fault, "call">])[] = [
    ["refused", { hresult: 0x80004005 }],
    ["done, and its answer lost with the service", { afterwards: 0x800706be }],
    ["done, and its answer late", { holdMs: 1_500, effectFirst: true }],
  ];
  /** What a change of the file makes, by what this HNS can do. */
  const versions = [
    [
      "13.3",
      { Major: 13, Minor: 3 },
      [
        "HcnOpenNetwork",
        "HcnCreateEndpoint",
        "HcnQueryEndpointProperties",
        "HcnCreateLoadBalancer",
        "HcnQueryLoadBalancerProperties",
        "HcnDeleteLoadBalancer",
        "HcnDeleteEndpoint",
      ],
    ],
    [
      "15.5, which changes load balancers in place",
      { Major: 15, Minor: 5 },
      ["HcnOpenLoadBalancer", "HcnModifyLoadBalancer", "HcnQueryLoadBalancerProperties"],
    ],
  ] as const;

  const alternate = (now: Elsewhere): Elsewhere => (now === elsewhere[0] ? elsewhere[1] : elsewhere[0]);

  test.each(versions.flatMap((of) => mishaps.map(([what, fault]) => [what, ...of, fault] as const)))(
    "come to be as the file says, whichever of the calls is %s, by HNS %s",
    async (_what, _name, version, calls, fault) => {
      store().version = version;
      let now: Elsewhere = elsewhere[0];
      write(now);
      await start();
      await goesTo(now);
      for (const call of calls) {
        using mishap = node.stubs.hns.fault({ ...fault, call, times: 1 });
        now = alternate(now);
        write(now);
        await mishap.hit();
        await goesTo(now);
      }
      await isClean(now);
      // A look of the agent may be under way.
      await expect.poll(() => node.stubs.hns.handles.list(), { timeout: 30_000 }).toEqual([]);
    },
    240_000,
  );

  test.each([
    ["before it is done", false],
    ["when it is done", true],
  ] as const)(
    "are put in force by the next agent where one is killed in a call, %s",
    async (_, effectFirst) => {
      let now: Elsewhere = elsewhere[0];
      write(now);
      await start();
      await goesTo(now);
      const changing = versions.flatMap(([, version, calls]) => calls.map((call) => [version, call] as const));
      for (const [version, call] of changing.filter(([, fn]) => /Create|Modify|Delete/.test(fn))) {
        store().version = version;
        await node.stop();
        await start();
        {
          using hang = node.stubs.hns.fault({ call, holdMs: "until released", effectFirst, times: 1 });
          now = alternate(now);
          write(now);
          await hang.hit();
          await node.stop(true);
        }
        await start();
        await goesTo(now);
        await isClean(now);
      }
    },
    240_000,
  );

  test("of which there are many: one list, each thing made once, and nothing changed by an agent that starts", async () => {
    const [services, others] = [40, 80];
    const endpoints = Array.from({ length: others }, (_, i) => ({
      ip: `10.9.${2 + (i >> 7)}.${1 + (i & 127)}`,
      port: 8080,
    }));
    const many = Array.from({ length: services }, (_, i) => ({
      name: `default/s${i}:http`,
      clusterIp: `10.96.1.${i}`,
      protocol: "tcp",
      port: 80,
      endpoints: [endpoints[i], endpoints[i + services]],
    }));
    wine.prefix.write(file, JSON.stringify({ services: many }));
    const { hns } = node.stubs;
    const isThere = () => expect.poll(() => [store().loadBalancers.size, remotes().length], { timeout: 120_000 });
    await start({ type: "L2Bridge" }, 30_000);
    await isThere().toEqual([services, others]);
    expect([hns.count("HcnCreateEndpoint"), hns.count("HcnCreateLoadBalancer")]).toEqual([others, services]);
    await node.stop();
    hns.calls.length = 0;
    await start({ type: "L2Bridge" }, 30_000);
    await expect.poll(() => hns.count("HcnQueryLoadBalancerProperties"), { timeout: 60_000 }).toBe(services);
    expect((await node.cni("DEL", "nobody")).t).toBe("ok");
    expect(hns.calls.filter(({ fn }) => /^Hcn(Create|Modify|Delete)/.test(fn))).toEqual([]);
    expect(hns.count("HcnEnumerateLoadBalancers")).toBe(1);
  }, 240_000);

  test("on an overlay have an endpoint for the cluster IP, and an address that no pod gets", async () => {
    write(elsewhere[0]);
    await start({ type: "Overlay", vsid: 4096 });
    await goesTo(elsewhere[0]);
    expect([...remotes()].sort()).toEqual([elsewhere[0], "10.96.0.10"]);
    const own = node.endpoints().filter(({ Flags }) => Flags !== 1);
    expect(own.map((each) => [addressesOf(each), each["MacAddress"]])).toEqual([[["10.9.0.254"], "00-15-5D-01-02-03"]]);
  });

  test("are made again where somebody has removed them", async () => {
    write(elsewhere[0]);
    await start();
    await goesTo(elsewhere[0]);
    store().loadBalancers.clear();
    expect(places()).toEqual(["nowhere"]);
    await expect.poll(places, { timeout: 60_000 }).toEqual([`${elsewhere[0]}:8080`]);
  });
});
