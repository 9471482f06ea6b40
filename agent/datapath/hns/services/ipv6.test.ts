import { describe, expect, test } from "vitest";
import { ip, namespaceA, requestFor } from "../../../../test/fakes/hns/hns-node.ts";
import { endpoint, port } from "../../../../test/fakes/hns/service-ports.ts";
import { apply, own, ServicesNode, web } from "../../../../test/fakes/hns/services-node.ts";
import type { ServiceProxy } from "../../services.ts";

const hns = new ServicesNode();

describe("IPv6 beside IPv4", () => {
  const six = port({
    key: "default/web:http/6",
    clusterIp: ip("fd96::a"),
    nodePort: 30_080,
    internal: [endpoint("fd00:9::7", true), endpoint("fd00:9:1::9")],
    external: [endpoint("fd00:9::7", true)],
    keepsClient: true,
  });
  const four = web({ nodePort: 30_080, external: [own], keepsClient: true });

  /** A network of somebody's with both, and a pod of both. @param Major of HNS */
  async function start(Major = 13): Promise<ServiceProxy> {
    const services = await hns.start({}, {}, 3, Major);
    const { store } = hns.fake.service;
    for (const [id, network] of store.networks) {
      const Ipams = [{ Subnets: [{ IpAddressPrefix: "10.9.0.0/24" }, { IpAddressPrefix: "fd00:9::/64" }] }];
      store.networks.set(id, { ...network, Ipams });
    }
    const pod = requestFor("c", namespaceA, 9);
    const ips = [...pod.ipam.ips, { address: { ip: ip("fd00:9::7"), prefix: 64 } }];
    await hns.dataPath.attach({ ...pod, ipam: { ...pod.ipam, ips } });
    return services;
  }

  test("leads to endpoints of the family, at the cluster IP and the node port, which both families have", async () => {
    const services = await start();
    expect(await apply(services, four, six)).toEqual([]);
    expect(hns.places({ from: "fd00:9::8", to: "fd96::a" })).toEqual(["fd00:9:1::9:8080", "fd00:9::7:8080"]);
    expect([...hns.remotes].sort()).toEqual(["10.9.1.9", "fd00:9:1::9"]);
    const outside = { from: "2001:db8::1", to: "fd01::5", port: 30_080 };
    expect(hns.goes(outside)).toEqual({ to: "fd00:9::7", port: 8080, from: "2001:db8::1" });
    expect(hns.places({ to: "192.168.1.5", port: 30_080 })).toEqual(["10.9.0.7:8080"]);
    expect(await services.differences()).toEqual([]);
    await apply(services, { ...six, keepsClient: false });
    expect(hns.goes(outside)?.from).toBe("fd01::5");
  });

  test("is refused by an HNS that does not have it; the IPv4 part is in force", async () => {
    const services = await start(11);
    const refused = await apply(services, four, six);
    expect(refused).toEqual([{ key: six.key, reason: "HNS 11.3 has no IPv6 beside IPv4" }]);
    expect(hns.places()).toEqual(["10.9.0.7:8080", "10.9.1.9:8080"]);
  });
});
