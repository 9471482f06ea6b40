import { expect, test } from "vitest";
import { ip } from "../../../../test/fakes/hns/hns-node.ts";
import { endpoint, port } from "../../../../test/fakes/hns/service-ports.ts";
import { apply, own, ServicesNode, servicesOf } from "../../../../test/fakes/hns/services-node.ts";

const hns = new ServicesNode();
const serviceCount = 2_000;
const endpointCount = 5_000;

const addressAt = (first: number, i: number): string => `10.${first + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;

test("2,000 services with 5,000 endpoints elsewhere: one list, and each thing is made once", async () => {
  const services = await hns.start();
  const others = Array.from({ length: endpointCount }, (_, i) => endpoint(addressAt(20, i)));
  const ports = Array.from({ length: serviceCount }, (_, i) =>
    port({
      key: `default/s${i}:`,
      clusterIp: ip(addressAt(96, i)),
      internal: [0, 1, 2, 3, 4].flatMap((at) => others[(i * 5 + at) % others.length] ?? []),
    }),
  );
  expect(await hns.changesOf(() => apply(services, ...ports))).toEqual({
    HcnEnumerateLoadBalancers: 1,
    HcnCreateEndpoint: endpointCount,
    HcnCreateLoadBalancer: serviceCount,
  });
  expect(hns.places({ to: addressAt(96, serviceCount - 1) })).toHaveLength(5);
  const next = hns.again();
  const started = await hns.changesOf(() => next.start());
  expect(Object.keys(started).filter((fn) => !fn.startsWith("HcnEnumerate") && fn !== "HNSCall")).toEqual([]);
  expect(await hns.changesOf(() => apply(servicesOf(next), ...ports))).toEqual({ HcnEnumerateLoadBalancers: 1 });
  const [first, ...rest] = ports;
  const changed = { ...(first ?? port()), internal: [own] };
  expect(await hns.changesOf(() => apply(servicesOf(next), changed, ...rest))).toEqual({
    HcnDeleteLoadBalancer: 1,
    HcnCreateLoadBalancer: 1,
  });
}, 180_000);
