import { describe, expect, test } from "vitest";
import { formatIp, parseIp } from "../../../../shared/net/ip.ts";
import {
  type Endpoint,
  hasSameAddress,
  isSame,
  maxEndpoints,
  normalised,
  removedEndpoints,
  type Service,
  sizeOf,
} from "./service.ts";

const at = (ip: string, port = 80, weight = 1): Endpoint => ({ ip: parseIp(ip)!, port, weight });
const service = (changes: Partial<Service> = {}): Service => ({
  key: "shop/web:http",
  clusterIp: parseIp("10.96.0.10")!,
  protocol: "udp",
  port: 53,
  endpoints: [at("10.1.0.5"), at("10.1.0.6")],
  ...changes,
});
const change = (before: Service | undefined, after: Service | undefined) => ({
  key: "shop/web:http",
  given: service(),
  before,
  after,
});
const names = (endpoints: readonly Pick<Endpoint, "ip" | "port">[]) =>
  endpoints.map(({ ip, port }) => `${formatIp(ip)}:${port}`);

test("a service has endpoints of its own family, each once, in one order, and as many as a group takes", () => {
  const given = [at("10.1.0.6", 81), at("fd00::5"), at("10.1.0.6", 80), at("10.1.0.5", 90), at("10.1.0.6", 80)];
  expect(names(normalised(service({ endpoints: given })).endpoints)).toEqual([
    "10.1.0.5:90",
    "10.1.0.6:80",
    "10.1.0.6:81",
  ]);
  const many = Array.from({ length: maxEndpoints + 1 }, (_, i) => at(`10.2.${i >> 8}.${i & 255}`));
  expect(normalised(service({ endpoints: many })).endpoints).toHaveLength(500);
});

describe("two services", () => {
  test.each<[string, Partial<Service>, boolean, boolean]>([
    ["the same", {}, true, true],
    ["another address", { clusterIp: parseIp("10.96.0.11")! }, false, false],
    ["another protocol", { protocol: "tcp" }, false, false],
    ["another port", { port: 54 }, false, false],
    ["another affinity", { affinitySeconds: 9 }, true, false],
    ["fewer endpoints", { endpoints: [at("10.1.0.5")] }, true, false],
    ["another endpoint", { endpoints: [at("10.1.0.5"), at("10.1.0.7")] }, true, false],
    ["another port of an endpoint", { endpoints: [at("10.1.0.5"), at("10.1.0.6", 81)] }, true, false],
    ["another weight", { endpoints: [at("10.1.0.5"), at("10.1.0.6", 80, 2)] }, true, false],
  ])("%s", (_name, changes, hasPlace, isAll) => {
    expect(hasSameAddress(service(), service(changes))).toBe(hasPlace);
    expect(isSame(service(), service(changes))).toBe(isAll);
  });
});

test("a change is as large as what comes and what goes", () => {
  expect(
    [change(undefined, undefined), change(service(), undefined), change(service(), service({ endpoints: [] }))].map(
      sizeOf,
    ),
  ).toEqual([0, 5, 8]);
});

describe("endpoints that have gone", () => {
  test.each<[string, Service | undefined, Service | undefined, readonly string[]]>([
    ["none of a new service", undefined, service(), []],
    ["all of one that has gone", service(), undefined, ["10.1.0.5:80", "10.1.0.6:80"]],
    ["those that it has no more", service(), service({ endpoints: [at("10.1.0.6"), at("10.1.0.9")] }), ["10.1.0.5:80"]],
    ["all of one that is elsewhere now", service(), service({ port: 54 }), ["10.1.0.5:80", "10.1.0.6:80"]],
    ["none of streams", service({ protocol: "tcp" }), undefined, []],
  ])("%s", (_name, before, after, gone) => {
    const removed = removedEndpoints(change(before, after));
    expect(names(removed.map(({ endpoint }) => endpoint))).toEqual(gone);
    for (const each of removed) expect(each.service).toBe(before);
  });
});
