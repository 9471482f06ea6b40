import { describe, expect, test } from "vitest";
import type { Fault } from "../../../../test/fakes/hns/faults.ts";
import { hnsNode, ip, namespaceA, ownerOf, requestFor } from "../../../../test/fakes/hns/hns-node.ts";
import { endpoint, port, portsOf } from "../../../../test/fakes/hns/service-ports.ts";
import {
  addressOf,
  apply,
  other,
  own,
  ServicesNode,
  second,
  servicesOf,
  settings,
  web,
} from "../../../../test/fakes/hns/services-node.ts";
import { isOwnId } from "./own-ids.ts";

const hns = new ServicesNode();

describe("a service", () => {
  test("leads to its endpoints here and elsewhere, at each of its addresses", async () => {
    const services = await hns.start();
    const all = { nodePort: 30_080, externalIps: [ip("198.51.100.1")], ingressIps: [ip("203.0.113.1")] };
    expect(await apply(services, web({ ...all, external: [own, other] }))).toEqual([]);
    const both = ["10.9.0.7:8080", "10.9.1.9:8080"];
    expect(hns.places()).toEqual(both);
    expect(hns.places({ to: "192.168.1.5", port: 30_080 })).toEqual(both);
    expect(hns.places({ to: "198.51.100.1" })).toEqual(both);
    expect(hns.places({ to: "203.0.113.1" })).toEqual(both);
    expect(hns.places({ protocol: "udp" })).toEqual(["nowhere"]);
    expect(hns.remotes).toEqual(["10.9.1.9"]);
    expect(await services.differences()).toEqual([]);
  });

  test("changes, and goes with all that it needed", async () => {
    const services = await hns.start();
    await apply(services, web());
    await apply(services, web({ internal: [second] }));
    expect([hns.places(), hns.remotes]).toEqual([["10.9.0.8:8080"], []]);
    await apply(services);
    expect([hns.balancers, hns.places()]).toEqual([[], ["nowhere"]]);
  });

  test("keeps a client's address where it is local, and hides nodes otherwise", async () => {
    const services = await hns.start();
    await apply(services, web({ nodePort: 30_080, external: [own], keepsClient: true }));
    expect(hns.goes({ from: "203.0.113.9", to: "192.168.1.5", port: 30_080 })).toEqual({
      to: "10.9.0.7",
      port: 8080,
      from: "203.0.113.9",
    });
    await apply(services, web({ nodePort: 30_080, external: [own] }));
    expect(hns.goes({ from: "203.0.113.9", to: "192.168.1.5", port: 30_080 })?.from).toBe("192.168.1.5");
  });

  test("has an affine client at one endpoint, whatever its port", async () => {
    const services = await hns.start();
    await apply(services, web({ affinitySeconds: 10_800 }));
    expect(hns.places()).toHaveLength(1);
  });

  test("reaches the pod that asks, which sees another than itself", async () => {
    const services = await hns.start();
    await apply(services, web({ internal: [own] }));
    expect(hns.goes({ from: "10.9.0.7" })).toMatchObject({ to: "10.9.0.7", from: "the node" });
  });

  test("gets an endpoint here as soon as its pod has one", async () => {
    const services = await hns.start();
    await apply(services, web({ internal: [endpoint("10.9.0.9", true)] }));
    expect(hns.places()).toEqual(["nowhere"]);
    expect(await services.differences()).toEqual([
      "HNS has no endpoint 10.9.0.9 yet, of this node, for default/web:http",
    ]);
    await hns.dataPath.attach({ ...requestFor("c", namespaceA, 9) });
    await expect.poll(() => hns.places()).toEqual(["10.9.0.9:8080"]);
  });

  test("of which others are not concerned: their load balancers are as they were", async () => {
    const services = await hns.start();
    const db = port({ key: "default/db:sql", clusterIp: ip("10.96.0.11"), internal: [second, other] });
    await apply(services, web(), db);
    const [kept] = hns.ids;
    const changes = await hns.changesOf(() => apply(services, web({ internal: [second] }), db));
    expect(changes).toEqual({ HcnDeleteLoadBalancer: 1, HcnCreateLoadBalancer: 1 });
    expect([hns.ids[0], hns.remotes]).toEqual([kept, ["10.9.1.9"]]);
    await apply(services, db);
    expect([hns.ids, hns.remotes]).toEqual([[kept], ["10.9.1.9"]]);
  });

  test("is as it was before: nothing is called", async () => {
    const services = await hns.start();
    await apply(services, web());
    expect(await hns.changesOf(() => apply(services, web()))).toEqual({});
  });

  test("stops between two calls where something newer waits, which goes on", async () => {
    const services = await hns.start();
    const stop = new AbortController();
    const ports = [web(), port({ key: "default/db:sql", clusterIp: ip("10.96.0.11"), internal: [own] })];
    using _ = hns.fake.service.fault({ call: "HcnCreateLoadBalancer", meanwhile: () => stop.abort() });
    await services.apply(portsOf(...ports), stop.signal);
    expect(hns.balancers).toHaveLength(1);
    await apply(services, ...ports);
    expect(hns.balancers).toHaveLength(2);
  });
});

test("status says how many there are of each kind, and what this HNS can do", async () => {
  const services = await hns.start();
  expect(services.summary).toBe("no services yet");
  await apply(services, web({ nodePort: 30_080, external: [own, other] }));
  expect(services.summary).toBe(
    "2 load balancers wanted (1 of cluster IP, 1 of node port, 0 of external IP, 0 of load balancer IP, " +
      "0 of health port), 2 in HNS; 1 of them with a block of 64 ports of the node each; " +
      "1 endpoints of other nodes and services; " +
      "HNS 13.3: dsr, dualStack, remoteSubnet, sessionAffinity, no modifyLoadBalancer",
  );
});

describe("a change in place", () => {
  test("keeps the load balancer where HNS can do it", async () => {
    const services = await hns.start({}, {}, 5, 15);
    await apply(services, web());
    const before = hns.ids;
    await apply(services, web({ internal: [second, endpoint("10.9.1.10")] }));
    expect([hns.ids, hns.remotes, hns.places()]).toEqual([before, ["10.9.1.10"], ["10.9.0.8:8080", "10.9.1.10:8080"]]);
  });

  test.each(["answers E_NOTIMPL", "says yes, changes nothing"] as const)(
    "is replaced by a new one where it %s, and not tried again",
    async (how) => {
      const services = await hns.start({}, {}, 5, 15);
      hns.fake.service.store.modifyingBalancers = how;
      await apply(services, web());
      expect(services.summary).toContain(" modifyLoadBalancer");
      expect(services.summary).not.toContain("no modifyLoadBalancer");
      const before = hns.ids;
      await apply(services, web({ internal: [second] }));
      expect(hns.places()).toEqual(["10.9.0.8:8080"]);
      expect(hns.ids).not.toEqual(before);
      expect(services.summary).toContain("no modifyLoadBalancer");
      const changes = await hns.changesOf(() => apply(services, web({ internal: [own] })));
      expect(changes).toEqual({ HcnDeleteLoadBalancer: 1, HcnCreateLoadBalancer: 1 });
    },
  );

  test.each<[string, Fault]>([
    ["its answer is lost", { call: "HcnModifyLoadBalancer", afterwards: 0x800706be, times: 1 }],
    ["it cannot be read back", { call: "HcnQueryLoadBalancerProperties", hresult: 0x80004005, times: 1 }],
  ])("may have been made where %s: what is wanted next is compared with what stands", async (_, fault) => {
    const services = await hns.start({}, {}, 5, 15);
    await apply(services, web());
    hns.fake.service.fault(fault);
    await apply(services, web({ internal: [second] })).catch(() => undefined);
    expect(hns.places()).toEqual(["10.9.0.8:8080"]);
    await apply(services, web());
    expect(hns.places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("of affinity, direct server return or source address alone is one", async () => {
    const services = await hns.start();
    const service = web({ nodePort: 30_080, external: [own] });
    await apply(services, service);
    expect(await hns.changesOf(() => apply(services, { ...service, affinitySeconds: 10_800 }))).toEqual({
      HcnDeleteLoadBalancer: 2,
      HcnCreateLoadBalancer: 2,
    });
    const changes = await hns.changesOf(() =>
      apply(services, { ...service, affinitySeconds: 10_800, keepsClient: true }),
    );
    expect(changes).toEqual({ HcnDeleteLoadBalancer: 1, HcnCreateLoadBalancer: 1 });
    const [balancer] = hns.balancers;
    Object.assign(balancer ?? {}, { SourceVIP: "10.9.0.99" });
    expect(await services.differences()).toHaveLength(1);
  });
});

describe("an agent that starts", () => {
  test("takes over what stands, and changes nothing", async () => {
    const services = await hns.start();
    const ports = [web({ nodePort: 30_080, external: [own, other] })];
    await apply(services, ...ports);
    const before = [hns.ids, hns.fake.endpoints.map(({ ID }) => ID)];
    const next = hns.again();
    await next.start();
    expect(await hns.changesOf(() => apply(servicesOf(next), ...ports))).toEqual({ HcnEnumerateLoadBalancers: 1 });
    expect([hns.ids, hns.fake.endpoints.map(({ ID }) => ID)]).toEqual(before);
  });

  test("removes what services have no more, and nothing before it knows them", async () => {
    const services = await hns.start();
    await apply(services, web());
    const next = hns.again();
    await next.start();
    expect(hns.balancers).toHaveLength(1);
    await apply(servicesOf(next), port({ internal: [] }));
    expect([hns.balancers, hns.remotes]).toEqual([[], []]);
  });

  test("without services removes all that an earlier one has made of them, and nobody else's", async () => {
    const services = await hns.start();
    await apply(services, web());
    const [pod] = hns.fake.endpoints;
    const theirs = "99999999-0000-4000-8000-000000000001";
    hns.fake.put("loadBalancer", theirs, { HostComputeEndpoints: [pod?.["ID"]], FrontendVIPs: ["10.96.0.99"] });
    await using dataPath = hns.again({ services: undefined });
    await dataPath.start();
    expect([hns.ids, hns.remotes, hns.fake.endpoints.length]).toEqual([[theirs], [], 2]);
  });

  test("after one that was killed in a creation finds what HNS has made of it since", async () => {
    const services = await hns.start();
    hns.fake.service.fault({ call: "HcnCreateLoadBalancer", holdMs: "until released", effectFirst: true, times: 1 });
    hns.fake.service.fault({ call: "HcnCreateEndpoint", holdMs: "until released", effectFirst: true, times: 1 });
    await apply(services, web());
    const next = hns.again();
    await next.start();
    await apply(servicesOf(next), web());
    expect([hns.balancers.length, hns.remotes, hns.places()]).toEqual([
      1,
      ["10.9.1.9"],
      ["10.9.0.7:8080", "10.9.1.9:8080"],
    ]);
  });
});

test("a pod that was there before services were asked for is named: it does not reach itself through one", async () => {
  await hns.start({ services: undefined }).catch(() => undefined);
  const next = hns.again({ services: settings });
  await next.start();
  await apply(servicesOf(next), web({ internal: [own] }));
  expect(hns.goes({ from: "10.9.0.7" })?.from).toBe("10.9.0.7");
  expect(await servicesOf(next).differences()).toEqual([
    expect.stringContaining("the pod 10.9.0.7 is older"),
    expect.stringContaining("the pod 10.9.0.8 is older"),
  ]);
});

describe("the network", () => {
  test("is another one in one answer alone: nothing is given up", async () => {
    const services = await hns.start({ listingMs: 10 });
    await apply(services, web());
    const before = hns.ids;
    const { networks } = hns.fake.service.store;
    const [[id, network] = ["", {}]] = [...networks];
    networks.clear();
    hns.fake.put("network", "99999999-0000-4000-8000-000000000001", network);
    await expect.poll(async () => (await hns.dataPath.problems()).length).toBe(1);
    networks.clear();
    networks.set(id, network);
    await hns.dataPath.start();
    expect([await apply(services, web()), hns.ids]).toEqual([[], before]);
  });

  test("is another: everything is made anew in it", async () => {
    const services = await hns.start({ listingMs: 10 });
    await apply(services, web());
    const { store } = hns.fake.service;
    const [before] = [...store.networks.keys()];
    for (const all of [store.endpoints, store.loadBalancers, store.networks]) all.clear();
    await expect.poll(async () => (await hns.dataPath.problems()).length).toBe(1);
    await expect(apply(services, web())).rejects.toMatchObject({ code: 11 });
    expect(hns.balancers).toEqual([]);
    await hns.dataPath.start();
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    await apply(services, web());
    expect([...store.networks.keys()]).not.toEqual([before]);
    expect(hns.places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("is missing in one answer: nothing is given up", async () => {
    const services = await hns.start({ listingMs: 10, servicesListingMs: 10 });
    await apply(services, web());
    const before = hns.ids;
    const { networks } = hns.fake.service.store;
    const [[key, network] = ["", {}]] = [...networks];
    networks.clear();
    await expect.poll(async () => (await hns.dataPath.problems()).length).toBe(1);
    networks.set(key, network);
    await hns.dataPath.start();
    expect(await apply(services, web())).toEqual([]);
    expect(hns.ids).toEqual(before);
  });

  test("of type Transparent balances nothing", async () => {
    await using node = hnsNode({ type: "Transparent" }, { services: settings });
    expect(node.dataPath.services).toBeUndefined();
  });

  test("an overlay has an address of its own that no pod gets, and an endpoint per cluster IP", async () => {
    const services = await hns.start({}, { type: "Overlay", vsid: 4096 });
    expect(hns.dataPath.addressesInUse(ownerOf("a"))).toContainEqual(ip("10.9.0.254"));
    await apply(services, web({ nodePort: 30_080, external: [own, other] }));
    expect([...hns.remotes].sort()).toEqual(["10.9.1.9", "10.96.0.10"]);
    expect(hns.fake.endpoints.map(addressOf)).toContain("10.9.0.254");
    // The other node is none that the network knows: packets find back by this node's own address alone.
    expect(hns.goes({ to: "192.168.1.5", port: 30_080 })?.from).toBe("192.168.1.5");
    await apply(services, web({ nodePort: 30_080, internal: [own], external: [own] }));
    expect(hns.goes({ to: "192.168.1.5", port: 30_080 })?.from).toBe("10.9.0.254");
    await apply(services);
    expect(hns.remotes).toEqual([]);
  });
});

test("identifiers of ours are told from others'", async () => {
  const services = await hns.start();
  await apply(services, web());
  expect(hns.ids.every((id) => isOwnId(String(id).toLowerCase()))).toBe(true);
  expect(hns.fake.endpoints.filter(({ ID }) => isOwnId(String(ID).toLowerCase())).map(addressOf)).toEqual(["10.9.1.9"]);
  expect(isOwnId(crypto.randomUUID())).toBe(false);
});
