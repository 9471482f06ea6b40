import { afterEach, describe, expect, test } from "vitest";
import type { ActiveFault, Fault } from "../../../../test/fakes/hns/faults.ts";
import {
  type HnsNode,
  hnsNode,
  ip,
  namespaceA,
  namespaceB,
  ownerOf,
  requestFor,
} from "../../../../test/fakes/hns/hns-node.ts";
import { type BalancedPacket, type Destination, whereTo } from "../../../../test/fakes/hns/load-balancers.ts";
import { endpoint, port, portsOf } from "../../../../test/fakes/hns/service-ports.ts";
import type { DataPath } from "../../datapath.ts";
import type { ServicePort, ServiceProxy } from "../../services.ts";
import { isOwnId } from "./own-ids.ts";

let hns: HnsNode;
afterEach(() => hns[Symbol.asyncDispose]());

const settings = { proxyAll: true, nodePortAddresses: [] };
/** No listing of its own but where a test waits for one. */
const never = { listingMs: 3_600_000, servicesListingMs: 3_600_000 };

/** A node whose pods 10.9.0.7 and 10.9.0.8 stand. */
async function node(more: object = {}, changes: object = {}, version = { Major: 13, Minor: 3 }): Promise<ServiceProxy> {
  hns = hnsNode({ type: "L2Bridge", ...changes }, { services: settings, ...never, ...more });
  hns.fake.service.store.version = version;
  await hns.dataPath.start();
  await hns.dataPath.attach(requestFor("a", namespaceA, 7));
  await hns.dataPath.attach(requestFor("b", namespaceB, 8));
  return servicesOf(hns.dataPath);
}

function servicesOf({ services }: DataPath): ServiceProxy {
  if (services === undefined) throw new Error("The data path balances no services");
  return services;
}

const apply = (proxy: ServiceProxy, ...ports: readonly ServicePort[]) =>
  proxy.apply(portsOf(...ports), new AbortController().signal);

const own = endpoint("10.9.0.7", true);
const second = endpoint("10.9.0.8", true);
const other = endpoint("10.9.1.9");
const web = (changes: Partial<ServicePort> = {}): ServicePort => port({ internal: [own, other], ...changes });

const balancers = () => [...hns.fake.service.store.loadBalancers.values()];
const ids = () => balancers().map(({ ID }) => ID);
const remotes = () => hns.fake.endpoints.filter(({ Flags }) => Flags === 1).map(addressOf);
const addressOf = (document: Readonly<Record<string, unknown>>): string =>
  (document["IpConfigurations"] as { IpAddress: string }[])[0]?.IpAddress ?? "";

/** Where packets of so many connections to the service go, each once, sorted. */
function places(packet: Partial<BalancedPacket> = {}): readonly string[] {
  const found = Array.from({ length: 64 }, (_, i) => goes({ ...packet, fromPort: 40_000 + i }));
  return [...new Set(found.map((one) => (one === undefined ? "nowhere" : `${one.to}:${one.port}`)))].sort();
}
function goes(packet: Partial<BalancedPacket> = {}): Destination | undefined {
  const whole = { from: "10.9.0.8", fromPort: 40_000, to: "10.96.0.10", port: 80, protocol: "tcp" as const, ...packet };
  return whereTo(hns.fake.service.store, whole, ["192.168.1.5"]);
}

/** How often functions were called during `run`, without those that look at one object. */
async function changesOf(run: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> {
  const { calls } = hns.fake.service;
  const before = calls.length;
  await run();
  const names = calls.slice(before).flatMap(({ fn }) => (/^Hcn(Open|Query|Close)/.test(fn) ? [] : [fn]));
  return Object.fromEntries(
    Map.groupBy(names, (name) => name)
      .entries()
      .map(([name, all]) => [name, all.length]),
  );
}

describe("a service", () => {
  test("leads to its endpoints here and elsewhere, at each of its addresses", async () => {
    const services = await node();
    const all = { nodePort: 30_080, externalIps: [ip("198.51.100.1")], ingressIps: [ip("203.0.113.1")] };
    expect(await apply(services, web({ ...all, external: [own, other] }))).toEqual([]);
    const both = ["10.9.0.7:8080", "10.9.1.9:8080"];
    expect(places()).toEqual(both);
    expect(places({ to: "192.168.1.5", port: 30_080 })).toEqual(both);
    expect(places({ to: "198.51.100.1" })).toEqual(both);
    expect(places({ to: "203.0.113.1" })).toEqual(both);
    expect(places({ protocol: "udp" })).toEqual(["nowhere"]);
    expect(remotes()).toEqual(["10.9.1.9"]);
    expect(await services.differences()).toEqual([]);
  });

  test("changes, and goes with all that it needed", async () => {
    const services = await node();
    await apply(services, web());
    await apply(services, web({ internal: [second] }));
    expect([places(), remotes()]).toEqual([["10.9.0.8:8080"], []]);
    await apply(services);
    expect([balancers(), places()]).toEqual([[], ["nowhere"]]);
  });

  test("keeps a client's address where it is local, and hides nodes otherwise", async () => {
    const services = await node();
    await apply(services, web({ nodePort: 30_080, external: [own], keepsClient: true }));
    expect(goes({ from: "203.0.113.9", to: "192.168.1.5", port: 30_080 })).toEqual({
      to: "10.9.0.7",
      port: 8080,
      from: "203.0.113.9",
    });
    await apply(services, web({ nodePort: 30_080, external: [own] }));
    expect(goes({ from: "203.0.113.9", to: "192.168.1.5", port: 30_080 })?.from).toBe("192.168.1.5");
  });

  test("has an affine client at one endpoint, whatever its port", async () => {
    const services = await node();
    await apply(services, web({ affinitySeconds: 10_800 }));
    expect(places()).toHaveLength(1);
  });

  test("reaches the pod that asks, which sees another than itself", async () => {
    const services = await node();
    await apply(services, web({ internal: [own] }));
    expect(goes({ from: "10.9.0.7" })).toMatchObject({ to: "10.9.0.7", from: "the node" });
  });

  test("gets an endpoint here as soon as its pod has one", async () => {
    const services = await node();
    await apply(services, web({ internal: [endpoint("10.9.0.9", true)] }));
    expect(places()).toEqual(["nowhere"]);
    expect(await services.differences()).toEqual([
      "HNS has no endpoint 10.9.0.9 yet, of this node, for default/web:http",
    ]);
    await hns.dataPath.attach({ ...requestFor("c", namespaceA, 9) });
    await expect.poll(() => places()).toEqual(["10.9.0.9:8080"]);
  });

  test("of which others are not concerned: their load balancers are as they were", async () => {
    const services = await node();
    const db = port({ key: "default/db:sql", clusterIp: ip("10.96.0.11"), internal: [second, other] });
    await apply(services, web(), db);
    const [kept] = ids();
    const changes = await changesOf(() => apply(services, web({ internal: [second] }), db));
    expect(changes).toEqual({ HcnDeleteLoadBalancer: 1, HcnCreateLoadBalancer: 1 });
    expect([ids()[0], remotes()]).toEqual([kept, ["10.9.1.9"]]);
    await apply(services, db);
    expect([ids(), remotes()]).toEqual([[kept], ["10.9.1.9"]]);
  });

  test("is as it was before: nothing is called", async () => {
    const services = await node();
    await apply(services, web());
    expect(await changesOf(() => apply(services, web()))).toEqual({});
  });

  test("stops between two calls where something newer waits, which goes on", async () => {
    const services = await node();
    const stop = new AbortController();
    const ports = [web(), port({ key: "default/db:sql", clusterIp: ip("10.96.0.11"), internal: [own] })];
    using _ = hns.fake.service.fault({ call: "HcnCreateLoadBalancer", meanwhile: () => stop.abort() });
    await services.apply(portsOf(...ports), stop.signal);
    expect(balancers()).toHaveLength(1);
    await apply(services, ...ports);
    expect(balancers()).toHaveLength(2);
  });
});

describe("a change in place", () => {
  const recent = { Major: 15, Minor: 5 };

  test("keeps the load balancer where HNS can do it", async () => {
    const services = await node({}, {}, recent);
    await apply(services, web());
    const before = ids();
    await apply(services, web({ internal: [second, endpoint("10.9.1.10")] }));
    expect([ids(), remotes(), places()]).toEqual([before, ["10.9.1.10"], ["10.9.0.8:8080", "10.9.1.10:8080"]]);
  });

  test.each(["not implemented", "says yes, changes nothing"] as const)(
    "is replaced by a new one where it %s, and not tried again",
    async (how) => {
      const services = await node({}, {}, recent);
      hns.fake.service.store.modifyingBalancers = how;
      await apply(services, web());
      const before = ids();
      await apply(services, web({ internal: [second] }));
      expect(places()).toEqual(["10.9.0.8:8080"]);
      expect(ids()).not.toEqual(before);
      const changes = await changesOf(() => apply(services, web({ internal: [own] })));
      expect(changes).toEqual({ HcnDeleteLoadBalancer: 1, HcnCreateLoadBalancer: 1 });
    },
  );

  test("of affinity, direct server return or source address alone is one", async () => {
    const services = await node();
    const service = web({ nodePort: 30_080, external: [own] });
    await apply(services, service);
    expect(await changesOf(() => apply(services, { ...service, affinitySeconds: 10_800 }))).toEqual({
      HcnDeleteLoadBalancer: 2,
      HcnCreateLoadBalancer: 2,
    });
    const changes = await changesOf(() => apply(services, { ...service, affinitySeconds: 10_800, keepsClient: true }));
    expect(changes).toEqual({ HcnDeleteLoadBalancer: 1, HcnCreateLoadBalancer: 1 });
    const [balancer] = balancers();
    Object.assign(balancer ?? {}, { SourceVIP: "10.9.0.99" });
    expect(await services.differences()).toHaveLength(1);
  });
});

describe("an agent that starts", () => {
  test("takes over what stands, and changes nothing", async () => {
    const services = await node();
    const ports = [web({ nodePort: 30_080, external: [own, other] })];
    await apply(services, ...ports);
    const before = [ids(), hns.fake.endpoints.map(({ ID }) => ID)];
    const next = hns.again();
    await next.start();
    expect(await changesOf(() => apply(servicesOf(next), ...ports))).toEqual({ HcnEnumerateLoadBalancers: 1 });
    expect([ids(), hns.fake.endpoints.map(({ ID }) => ID)]).toEqual(before);
  });

  test("removes what services have no more, and nothing before it knows them", async () => {
    const services = await node();
    await apply(services, web());
    const next = hns.again();
    await next.start();
    expect(balancers()).toHaveLength(1);
    await apply(servicesOf(next), port({ internal: [] }));
    expect([balancers(), remotes()]).toEqual([[], []]);
  });

  test("without services removes all that an earlier one has made of them, and nobody else's", async () => {
    const services = await node();
    await apply(services, web());
    const [pod] = hns.fake.endpoints;
    const theirs = "99999999-0000-4000-8000-000000000001";
    hns.fake.put("loadBalancer", theirs, { HostComputeEndpoints: [pod?.["ID"]], FrontendVIPs: ["10.96.0.99"] });
    await using dataPath = hns.again({ services: undefined });
    await dataPath.start();
    expect([ids(), remotes(), hns.fake.endpoints.length]).toEqual([[theirs], [], 2]);
  });

  test("after one that was killed in a creation finds what HNS has made of it since", async () => {
    const services = await node();
    hns.fake.service.fault({ call: "HcnCreateLoadBalancer", holdMs: "until released", effectFirst: true, times: 1 });
    hns.fake.service.fault({ call: "HcnCreateEndpoint", holdMs: "until released", effectFirst: true, times: 1 });
    await apply(services, web());
    const next = hns.again();
    await next.start();
    await apply(servicesOf(next), web());
    expect([balancers().length, remotes(), places()]).toEqual([1, ["10.9.1.9"], ["10.9.0.7:8080", "10.9.1.9:8080"]]);
  });
});

describe("what others have made", () => {
  const theirs = "99999999-0000-4000-8000-000000000001";
  const put = (to: unknown, vip = "10.96.0.10"): void =>
    hns.fake.put("loadBalancer", theirs, {
      HostComputeEndpoints: [to],
      FrontendVIPs: [vip],
      PortMappings: [{ Protocol: 6, InternalPort: 1, ExternalPort: 80 }],
      SchemaVersion: { Major: 2, Minor: 0 },
    });

  test("stays, and is named where it has the place of a service", async () => {
    const services = await node();
    put(hns.fake.endpoints[0]?.["ID"]);
    const refused = await apply(services, web());
    expect(refused).toEqual([{ key: "default/web:http", reason: expect.stringContaining(theirs) }]);
    expect(ids()).toEqual([theirs]);
    expect(await services.differences()).toEqual([expect.stringContaining(theirs)]);
    hns.fake.service.store.loadBalancers.clear();
    expect(await services.differences()).toEqual([expect.stringContaining("missing in HNS")]);
    expect(await apply(services, web())).toEqual([]);
    expect(places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("has come since the last listing: one listing, and it is named", async () => {
    const services = await node();
    await apply(services);
    put(hns.fake.endpoints[0]?.["ID"]);
    let refused: readonly unknown[] = [];
    const changes = await changesOf(async () => {
      refused = await apply(services, web({ internal: [own] }));
    });
    expect(changes).toMatchObject({ HcnEnumerateLoadBalancers: 1, HcnEnumerateEndpoints: 1 });
    expect(refused).toEqual([{ key: "default/web:http", reason: expect.stringContaining(theirs) }]);
  });

  test("an endpoint of somebody's on another node's pod serves ours too, and stays", async () => {
    const services = await node();
    const [network] = hns.fake.networks;
    hns.fake.put("endpoint", theirs, {
      HostComputeNetwork: network?.["ID"],
      Flags: 1,
      MacAddress: "02-11-0A-09-01-09",
      IpConfigurations: [{ IpAddress: "10.9.1.9" }],
    });
    const next = hns.again();
    await next.start();
    await apply(servicesOf(next), web());
    expect([remotes(), places()]).toEqual([["10.9.1.9"], ["10.9.0.7:8080", "10.9.1.9:8080"]]);
    await apply(servicesOf(next));
    expect(remotes()).toEqual(["10.9.1.9"]);
    await apply(services);
  });

  test("an endpoint that has come since the last listing serves, and no load balancer goes meanwhile", async () => {
    const services = await node({}, {}, { Major: 15, Minor: 5 });
    await apply(services, web({ internal: [other] }));
    const before = ids();
    const [network] = hns.fake.networks;
    hns.fake.put("endpoint", theirs, {
      HostComputeNetwork: network?.["ID"],
      Flags: 1,
      MacAddress: "02-11-0A-09-01-0A",
      IpConfigurations: [{ IpAddress: "10.9.1.10" }],
    });
    expect(await apply(services, web({ internal: [endpoint("10.9.1.10")] }))).toEqual([]);
    expect([ids(), places()]).toEqual([before, ["10.9.1.10:8080"]]);
  });

  test("a stale endpoint of another node at an address of this node's pods goes", async () => {
    await node();
    const [network] = hns.fake.networks;
    hns.fake.put("endpoint", theirs, {
      HostComputeNetwork: network?.["ID"],
      Flags: 1,
      MacAddress: "02-11-0A-09-00-63",
      IpConfigurations: [{ IpAddress: "10.9.0.99" }],
    });
    const next = hns.again();
    await next.start();
    await apply(servicesOf(next), web());
    expect(remotes()).toEqual(["10.9.1.9"]);
  });

  test("removes ours: made again at the next look, and kube-proxy is named when it comes to that again", async () => {
    const services = await node({ listingMs: 10, servicesListingMs: 10 });
    await apply(services, web());
    for (let round = 0; round < 2; round++) {
      hns.fake.service.store.loadBalancers.clear();
      await expect.poll(() => places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
    }
    expect(await services.differences()).toEqual([expect.stringContaining("kube-proxy")]);
  });
});

describe("a call that goes wrong", () => {
  const fault = (what: Fault): ActiveFault => hns.fake.service.fault(what);
  const db = port({ key: "default/db:sql", clusterIp: ip("10.96.0.11"), internal: [own] });

  test("concerns its own service alone, and is made again after a pause", async () => {
    const services = await node({ listingMs: 50 });
    {
      using _ = fault({ call: "HcnCreateLoadBalancer", match: "10.96.0.10", hresult: 0x8007000e });
      const refused = await apply(services, web(), db);
      expect(refused).toEqual([{ key: "default/web:http", reason: expect.stringContaining("E_OUTOFMEMORY") }]);
      expect([places(), places({ to: "10.96.0.11" })]).toEqual([["nowhere"], ["10.9.0.7:8080"]]);
      // Its pause is not over.
      expect(await changesOf(() => apply(services, web(), db))).toEqual({});
    }
    await expect.poll(() => places(), { timeout: 5_000 }).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("of an endpoint elsewhere leaves the others of its service", async () => {
    const services = await node();
    using _ = fault({ call: "HcnCreateEndpoint", match: "10.9.1.9", hresult: 0x80004005 });
    expect(await apply(services, web())).toEqual([
      { key: "default/web:http", reason: expect.stringContaining("endpoint 10.9.1.9") as string },
    ]);
    expect(places()).toEqual(["10.9.0.7:8080"]);
  });

  test("deletes at the second attempt, as Windows Server 2019 has it", async () => {
    const services = await node();
    await apply(services, web());
    fault({ call: "HcnDeleteLoadBalancer", hresult: 0x80004005, times: 1 });
    await apply(services);
    expect(balancers()).toEqual([]);
  });

  test("does not delete: told, kept and tried again; its endpoints stay as long", async () => {
    const services = await node();
    await apply(services, web());
    {
      using _ = fault({ call: "HcnDeleteLoadBalancer", hresult: 0x80004005 });
      await apply(services);
      expect([balancers().length, remotes()]).toEqual([1, ["10.9.1.9"]]);
    }
    await Bun.sleep(1_100);
    await apply(services);
    expect([balancers(), remotes()]).toEqual([[], []]);
  });

  test.each(["HcnEnumerateLoadBalancers", "HcnOpenNetwork"])("%s is no absence: nothing is changed", async (call) => {
    const services = await node();
    await apply(services, web());
    const before = ids();
    const next = hns.again();
    await next.start();
    {
      using _ = fault({ call, hresult: 0x80004005 });
      await expect(apply(servicesOf(next), web())).rejects.toMatchObject({ code: 11 });
    }
    expect([ids(), remotes()]).toEqual([before, ["10.9.1.9"]]);
    await apply(servicesOf(next), web());
    expect(ids()).toEqual(before);
  });

  test("is any one of all that a change makes: the others are done, and in the end everything is as wanted", async () => {
    const services = await node();
    const ports = [web({ nodePort: 30_080, external: [own, other] }), db];
    for (const mishap of [{ hresult: 0x80004005 }, { holdMs: "until released" }, { afterwards: 0x800706be }] as const) {
      await apply(services);
      const { calls } = hns.fake.service;
      const before = calls.length;
      await apply(services, ...ports);
      const count = calls.slice(before).filter(({ fn }) => !fn.startsWith("HcnClose")).length;
      await apply(services);
      expect(count).toBeGreaterThan(5);
      for (let n = 0; n < count; n++) {
        using one = fault({ ...mishap, call: "*", skip: n, times: 1 });
        await apply(services, ...ports).catch(() => undefined);
        one[Symbol.dispose]();
        const next = hns.again();
        await next.start();
        const what = `call ${n} ${JSON.stringify(mishap)}`;
        expect([what, await apply(servicesOf(next), ...ports)]).toEqual([what, []]);
        expect([what, places(), places({ to: "10.96.0.11" })]).toEqual([
          what,
          ["10.9.0.7:8080", "10.9.1.9:8080"],
          ["10.9.0.7:8080"],
        ]);
        expect([what, balancers().length, remotes()]).toEqual([what, 3, ["10.9.1.9"]]);
        await apply(servicesOf(next));
        await apply(services);
      }
    }
  }, 60_000);

  test("makes HNS hang: after three the rest waits", async () => {
    const services = await node();
    const many = Array.from({ length: 10 }, (_, i) =>
      port({ key: `default/s${i}:`, clusterIp: ip(`10.96.1.${i}`), internal: [own] }),
    );
    using hang = fault({ call: "HcnCreateLoadBalancer", holdMs: "until released" });
    await expect(apply(services, ...many)).rejects.toMatchObject({ code: 11 });
    expect(hang.hits).toBe(3);
  });

  test("HNS has restarted: everything is made again with its pods' endpoints", async () => {
    const services = await node({ listingMs: 10, servicesListingMs: 10 });
    await apply(services, web());
    hns.fake.service.restart();
    await expect.poll(() => hns.dataPath.missing?.().length).toBe(2);
    for (const missing of hns.dataPath.missing?.() ?? []) await hns.dataPath.remake?.(missing, undefined);
    await expect.poll(() => places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("shows another document than it was given: no change of anybody's, but one that comes later is", async () => {
    const services = await node();
    hns.fake.service.store.hiddenOfBalancers = "SourceVIP";
    await apply(services, web({ internal: [own] }));
    expect(await services.differences()).toEqual([]);
    expect(await changesOf(() => apply(services, web({ internal: [own] })))).toEqual({});
    for (const balancer of balancers()) Object.assign(balancer, { Flags: 0 });
    expect(await services.differences()).toHaveLength(1);
  });
});

describe("the network", () => {
  test("is another: everything is made anew in it", async () => {
    const services = await node({ listingMs: 10 });
    await apply(services, web());
    const { store } = hns.fake.service;
    const [before] = [...store.networks.keys()];
    for (const all of [store.endpoints, store.loadBalancers, store.networks]) all.clear();
    await expect.poll(async () => (await hns.dataPath.problems()).length).toBe(1);
    await expect(apply(services, web())).rejects.toMatchObject({ code: 11 });
    expect(balancers()).toEqual([]);
    await hns.dataPath.start();
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    await apply(services, web());
    expect([...store.networks.keys()]).not.toEqual([before]);
    expect(places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("is missing in one answer: nothing is given up", async () => {
    const services = await node({ listingMs: 10, servicesListingMs: 10 });
    await apply(services, web());
    const before = ids();
    const { networks } = hns.fake.service.store;
    const [[key, network] = ["", {}]] = [...networks];
    networks.clear();
    await expect.poll(async () => (await hns.dataPath.problems()).length).toBe(1);
    networks.set(key, network);
    await hns.dataPath.start();
    expect(await apply(services, web())).toEqual([]);
    expect(ids()).toEqual(before);
  });

  test("of type Transparent balances nothing", async () => {
    hns = hnsNode({ type: "Transparent" }, { services: settings });
    expect(hns.dataPath.services).toBeUndefined();
  });

  test("an overlay has an address of its own that no pod gets, and an endpoint per cluster IP", async () => {
    const services = await node({}, { type: "Overlay", vsid: 4096 });
    expect(hns.dataPath.addressesInUse(ownerOf("a"))).toContainEqual(ip("10.9.0.254"));
    await apply(services, web({ nodePort: 30_080, external: [own, other] }));
    expect(remotes().sort()).toEqual(["10.9.1.9", "10.96.0.10"]);
    expect(hns.fake.endpoints.map(addressOf)).toContain("10.9.0.254");
    // The other node is none that the network knows: packets find back by this node's own address alone.
    expect(goes({ to: "192.168.1.5", port: 30_080 })?.from).toBe("192.168.1.5");
    await apply(services, web({ nodePort: 30_080, internal: [own], external: [own] }));
    expect(goes({ to: "192.168.1.5", port: 30_080 })?.from).toBe("10.9.0.254");
    await apply(services);
    expect(remotes()).toEqual([]);
  });
});

test("identifiers of ours are told from others'", async () => {
  const services = await node();
  await apply(services, web());
  expect(ids().every((id) => isOwnId(String(id).toLowerCase()))).toBe(true);
  expect(hns.fake.endpoints.filter(({ ID }) => isOwnId(String(ID).toLowerCase())).map(addressOf)).toEqual(["10.9.1.9"]);
  expect(isOwnId(crypto.randomUUID())).toBe(false);
});

test("200 services with 500 endpoints elsewhere: lists are as few as for one, and each thing is made once", async () => {
  const services = await node();
  const others = Array.from({ length: 500 }, (_, i) => endpoint(`10.${20 + Math.floor(i / 250)}.1.${1 + (i % 250)}`));
  const ports = Array.from({ length: 200 }, (_, i) =>
    port({
      key: `default/s${i}:`,
      clusterIp: ip(`10.96.0.${1 + i}`),
      internal: [0, 1, 2, 3, 4].flatMap((at) => others[(i * 5 + at) % others.length] ?? []),
    }),
  );
  expect(await changesOf(() => apply(services, ...ports))).toEqual({
    HcnEnumerateLoadBalancers: 1,
    HcnCreateEndpoint: 500,
    HcnCreateLoadBalancer: 200,
  });
  const next = hns.again();
  await next.start();
  expect(await changesOf(() => apply(servicesOf(next), ...ports))).toEqual({ HcnEnumerateLoadBalancers: 1 });
  const [first, ...rest] = ports;
  const changed = { ...(first ?? port()), internal: [own] };
  expect(await changesOf(() => apply(servicesOf(next), changed, ...rest))).toEqual({
    HcnDeleteLoadBalancer: 1,
    HcnCreateLoadBalancer: 1,
  });
}, 60_000);
