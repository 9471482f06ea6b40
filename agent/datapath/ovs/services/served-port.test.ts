import { describe, expect, test } from "vitest";
import { formatIp, parseCidr } from "../../../../shared/net/ip.ts";
import { endpointAt as at, servicePort } from "../../../../test/fakes/service-port.ts";
import type { Endpoint, ServicePort } from "../../services.ts";
import {
  isSame,
  maxEndpoints,
  placeName,
  placesOnlyIn,
  servedPort,
  shortcomingOf,
  sizeOf,
  staleConnections,
} from "./served-port.ts";

const service = (changes: Parameters<typeof servicePort>[0] = {}): ServicePort =>
  servicePort({ protocol: "udp", port: 53, endpoints: [at("10.1.0.5", 80), at("10.1.0.6", 80)], ...changes });
const served = (changes: Parameters<typeof servicePort>[0] = {}) => servedPort(service(changes), true);
const change = (before: ServicePort | undefined, after: ServicePort | undefined) => ({
  key: "default/web:http",
  given: service(),
  before: before && servedPort(before, true),
  after: after && servedPort(after, true),
});
const names = (endpoints: readonly Pick<Endpoint, "ip" | "port">[]) =>
  endpoints.map(({ ip, port }) => `${formatIp(ip)}:${port}`);

test("a service has endpoints of its own family, each once, in one order, and as many as a group takes", () => {
  const given = [at("10.1.0.6", 81), at("fd00::5"), at("10.1.0.6", 80), at("10.1.0.5", 90), at("10.1.0.6", 80)];
  expect(names(served({ endpoints: given }).places[0]?.inside ?? [])).toEqual([
    "10.1.0.5:90",
    "10.1.0.6:80",
    "10.1.0.6:81",
  ]);
  const many = service({
    endpoints: Array.from({ length: maxEndpoints + 1 }, (_, i) => at(`10.2.${i >> 8}.${i & 255}`)),
  });
  expect(servedPort(many, true).places[0]?.inside).toHaveLength(500);
  expect(shortcomingOf(many)).toBe("it has 501 endpoints, of which 500 are used");
  expect(shortcomingOf(service({ affinitySeconds: 86_400 }))).toContain("for 65535 s in place of 86400");
  expect([served({ affinitySeconds: 86_400 }).affinitySeconds, shortcomingOf(service())]).toEqual([65_535, undefined]);
});

test("a service is met at each of its addresses once, and at its cluster IP alone where nobody asked for more", () => {
  const ranges = [parseCidr("192.0.2.0/24")!];
  const everywhere = service({
    nodePort: 30053,
    externalIps: ["192.0.2.1", "192.0.2.2", "10.96.0.10"],
    ingressIps: ["192.0.2.2", "192.0.2.2"],
    sourceRanges: ranges,
  });
  expect(servedPort(everywhere, true).places.map((place) => [placeName(place), place.ranges])).toEqual([
    ["10.96.0.10 53", undefined],
    ["192.0.2.2 53", ranges],
    ["192.0.2.1 53", undefined],
    ["node 30053", undefined],
  ]);
  expect(servedPort(everywhere, false).places.map(placeName)).toEqual(["10.96.0.10 53"]);
});

test("lists that say the same are one, and places tell who is answered by which", () => {
  const [five, six] = [at("10.1.0.5", 80), at("10.1.0.6", 80)];
  const [clusterIp, node] = served({ nodePort: 1, internal: [six, five], external: [six] }).places;
  expect(node?.inside).toBe(clusterIp?.inside);
  expect(node?.outside).toEqual([six]);
  const empty = servedPort(service({ internal: [], external: [] }), true);
  expect([empty.hasEndpoints, served({ endpoints: [] }).hasEndpoints]).toEqual([true, false]);
});

describe("two services", () => {
  test.each<[string, Parameters<typeof servicePort>[0], boolean, boolean]>([
    ["the same", {}, true, true],
    ["another address", { clusterIp: "10.96.0.11" }, false, false],
    ["another protocol", { protocol: "tcp" }, false, false],
    ["another port", { port: 54 }, false, false],
    ["a node port", { nodePort: 54 }, true, false],
    ["another affinity", { affinitySeconds: 9 }, true, false],
    ["fewer endpoints", { endpoints: [at("10.1.0.5", 80)] }, true, false],
    ["none here", { internal: [] }, true, false],
    ["another endpoint", { endpoints: [at("10.1.0.5", 80), at("10.1.0.7", 80)] }, true, false],
    ["another port of an endpoint", { endpoints: [at("10.1.0.5", 80), at("10.1.0.6", 81)] }, true, false],
    ["another weight", { endpoints: [at("10.1.0.5", 80), at("10.1.0.6", 80, 2)] }, true, false],
  ])("%s", (_name, changes, hasPlaces, isAll) => {
    expect(placesOnlyIn(served(), served(changes)).length === 0).toBe(hasPlaces);
    expect(isSame(served(), served(changes))).toBe(isAll);
  });

  test("other source ranges", () => {
    const from = (range: string) => served({ ingressIps: ["192.0.2.1"], sourceRanges: [parseCidr(range)!] });
    expect([isSame(from("10.0.0.0/8"), from("10.0.0.0/8")), isSame(from("10.0.0.0/8"), from("11.0.0.0/8"))]).toEqual([
      true,
      false,
    ]);
  });
});

test("a change is as large as what comes and what goes", () => {
  expect(
    [change(undefined, undefined), change(service(), undefined), change(service(), service({ endpoints: [] }))].map(
      sizeOf,
    ),
  ).toEqual([0, 5, 8]);
});

describe("connections to forget", () => {
  test.each<[string, ServicePort | undefined, ServicePort | undefined, readonly string[]]>([
    ["none of a new service", undefined, service(), []],
    ["all of one that has gone", service(), undefined, ["53 10.1.0.5:80", "53 10.1.0.6:80"]],
    [
      "to those that it has no more",
      service(),
      service({ endpoints: [at("10.1.0.6", 80), at("10.1.0.9", 80)] }),
      ["53 10.1.0.5:80"],
    ],
    ["all of one that is elsewhere now", service(), service({ port: 54 }), ["53 10.1.0.5:80", "53 10.1.0.6:80"]],
    ["none of streams", service({ protocol: "tcp" }), undefined, []],
    ["those that were refused", service({ endpoints: [] }), service(), ["53"]],
    [
      "of each place",
      service({ nodePort: 30053 }),
      service({ nodePort: 30053, endpoints: [at("10.1.0.6", 80)] }),
      ["53 10.1.0.5:80", "30053 10.1.0.5:80"],
    ],
    ["none that others still answer", service({ nodePort: 9, external: [] }), service({ nodePort: 9 }), []],
  ])("%s", (_name, before, after, gone) => {
    const stale = staleConnections(change(before, after));
    expect(
      stale.map(({ port, endpoint }) => `${port} ${endpoint === undefined ? "" : names([endpoint])}`.trim()),
    ).toEqual(gone);
  });
});
