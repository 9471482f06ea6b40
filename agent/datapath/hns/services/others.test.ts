import { describe, expect, test } from "vitest";
import { endpoint } from "../../../../test/fakes/hns/service-ports.ts";
import { apply, other, own, ServicesNode, servicesOf, web } from "../../../../test/fakes/hns/services-node.ts";

const hns = new ServicesNode();

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
    const services = await hns.start();
    put(hns.fake.endpoints[0]?.["ID"]);
    const refused = await apply(services, web());
    expect(refused).toEqual([{ key: "default/web:http", reason: expect.stringContaining(theirs) }]);
    expect(hns.ids).toEqual([theirs]);
    expect(await services.differences()).toEqual([expect.stringContaining(theirs)]);
    hns.fake.service.store.loadBalancers.clear();
    expect(await services.differences()).toEqual([expect.stringContaining("missing in HNS")]);
    expect(await apply(services, web())).toEqual([]);
    expect(hns.places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });

  test("has come since the last listing: one listing, and it is named", async () => {
    const services = await hns.start();
    await apply(services);
    put(hns.fake.endpoints[0]?.["ID"]);
    let refused: readonly unknown[] = [];
    const changes = await hns.changesOf(async () => {
      refused = await apply(services, web({ internal: [own] }));
    });
    expect(changes).toMatchObject({ HcnEnumerateLoadBalancers: 1, HcnEnumerateEndpoints: 1 });
    expect(refused).toEqual([{ key: "default/web:http", reason: expect.stringContaining(theirs) }]);
  });

  test("an endpoint of somebody's on another node's pod serves ours too, and stays", async () => {
    const services = await hns.start();
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
    expect([hns.remotes, hns.places()]).toEqual([["10.9.1.9"], ["10.9.0.7:8080", "10.9.1.9:8080"]]);
    await apply(servicesOf(next));
    expect(hns.remotes).toEqual(["10.9.1.9"]);
    await apply(services);
  });

  test("an endpoint that has come since the last listing serves, and no load balancer goes meanwhile", async () => {
    const services = await hns.start({}, {}, 5, 15);
    await apply(services, web({ internal: [other] }));
    const before = hns.ids;
    const [network] = hns.fake.networks;
    hns.fake.put("endpoint", theirs, {
      HostComputeNetwork: network?.["ID"],
      Flags: 1,
      MacAddress: "02-11-0A-09-01-0A",
      IpConfigurations: [{ IpAddress: "10.9.1.10" }],
    });
    expect(await apply(services, web({ internal: [endpoint("10.9.1.10")] }))).toEqual([]);
    expect([hns.ids, hns.places()]).toEqual([before, ["10.9.1.10:8080"]]);
  });

  test("a stale endpoint of another node at an address of this node's pods goes", async () => {
    await hns.start();
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
    expect(hns.remotes).toEqual(["10.9.1.9"]);
  });

  test("removes ours: made again at the next look, and kube-proxy is named when it comes to that again", async () => {
    const services = await hns.start({ listingMs: 10, servicesListingMs: 10 });
    await apply(services, web());
    for (let round = 0; round < 2; round++) {
      hns.fake.service.store.loadBalancers.clear();
      await expect.poll(() => hns.places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
    }
    expect(await services.differences()).toEqual([expect.stringContaining("kube-proxy")]);
  });
});

test("an endpoint elsewhere that somebody removes is made again at the next look, and led to", async () => {
  const services = await hns.start({ listingMs: 10 });
  await apply(services, web());
  const [gone] = hns.fake.endpoints.filter(({ Flags }) => Flags === 1);
  hns.fake.service.store.endpoints.delete(String(gone?.["ID"]));
  expect(hns.places()).toEqual(["10.9.0.7:8080"]);
  await expect.poll(() => hns.places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  expect(await services.differences()).toEqual([]);
});
