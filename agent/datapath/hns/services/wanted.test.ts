import { describe, expect, test } from "vitest";
import { cidr, ip } from "../../../../test/fakes/hns/hns-node.ts";
import { endpoint, features, port } from "../../../../test/fakes/hns/service-ports.ts";
import type { ServicePort } from "../../services.ts";
import { type NodeView, type Wanted, wantedOf } from "./wanted.ts";

/** A node 10.0.0.1 with two pods, and one other node whose pods an overlay knows. */
const l2Bridge: NodeView = {
  remoteSubnets: [],
  nodeAddress: ip("10.0.0.1"),
  ipv6: { lacks: "the HNS network of type L2Bridge has no IPv6" },
  podSubnet: cidr("192.168.1.0/24"),
  features: features("15.5"),
  proxyAll: true,
  nodePorts: true,
  local: new Map([
    ["192.168.1.7", "pod-7"],
    ["192.168.1.8", "pod-8"],
  ]),
};
const overlay: NodeView = {
  ...l2Bridge,
  remoteSubnets: [{ prefix: cidr("192.168.2.0/24"), provider: "10.0.0.3" }],
  overlay: { sourceVip: "192.168.1.254", nodeMac: "00-15-5D-01-02-03" },
};

const own = endpoint("192.168.1.7", true);
const second = endpoint("192.168.1.8", true);
const other = endpoint("192.168.2.9");

/** A service of every address, with an endpoint here and one elsewhere. */
const whole: Partial<ServicePort> = {
  nodePort: 30_080,
  externalIps: [ip("198.51.100.1")],
  ingressIps: [ip("203.0.113.1")],
  internal: [own, other],
  external: [own, other],
  cluster: [own, other],
};

/** `kind vip external->internal/protocol flags LB+mapping distribution from source to endpoints`. */
const drawn = (wanted: Wanted): readonly string[] =>
  [...wanted.balancers.values()].map(
    (one) =>
      `${one.kind} ${one.vip ?? "*"} ${one.port}->${one.internalPort}/${one.protocol} ${one.flags}+${one.mappingFlags} ` +
      `${one.distribution} from ${one.sourceVip || "-"} to ${[...one.local, ...one.remote].join(" ")}`,
  );
const refusals = (wanted: Wanted): readonly string[] => wanted.refused.map(({ reason }) => reason);

describe("the load balancers of a service", () => {
  const here = "from 10.0.0.1 to";
  test.each<[string, Partial<NodeView>, Partial<ServicePort>, readonly string[]]>([
    [
      "of every address: one each",
      {},
      whole,
      [
        `cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-7 192.168.2.9`,
        `node port * 30080->8080/6 0+18 0 ${here} pod-7 192.168.2.9`,
        `external IP 198.51.100.1 80->8080/6 0+16 0 ${here} pod-7 192.168.2.9`,
        `load balancer IP 203.0.113.1 80->8080/6 0+16 0 ${here} pod-7 192.168.2.9`,
      ],
    ],
    [
      "that keeps clients' addresses: direct server return outside, by its local endpoints",
      {},
      { ...whole, external: [own], keepsClient: true },
      [
        `cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-7 192.168.2.9`,
        `node port * 30080->8080/6 1+18 0 ${here} pod-7`,
        `external IP 198.51.100.1 80->8080/6 1+16 0 ${here} pod-7`,
        `load balancer IP 203.0.113.1 80->8080/6 1+16 0 ${here} pod-7`,
      ],
    ],
    [
      "whose local endpoints have gone: the cluster IP alone",
      {},
      { ...whole, external: [], keepsClient: true },
      [`cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-7 192.168.2.9`],
    ],
    [
      "with internal traffic kept here: the cluster IP by local ones",
      {},
      { internal: [own, second], external: [other] },
      [`cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-7 pod-8`],
    ],
    [
      "that preserves destinations: node port and load balancer by local ones, external IPs by all",
      {},
      { ...whole, preservesDestination: true },
      [
        `cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-7 192.168.2.9`,
        `node port * 30080->8080/6 0+18 0 ${here} pod-7`,
        `external IP 198.51.100.1 80->8080/6 0+16 0 ${here} pod-7 192.168.2.9`,
        `load balancer IP 203.0.113.1 80->8080/6 1+28 0 ${here} pod-7`,
      ],
    ],
    [
      "with session affinity: by client, at each address",
      {},
      { nodePort: 30_080, internal: [own], external: [own], affinitySeconds: 10_800 },
      [`cluster IP 10.96.0.10 80->8080/6 1+0 2 ${here} pod-7`, `node port * 30080->8080/6 0+18 2 ${here} pod-7`],
    ],
    ["of UDP", {}, { protocol: "udp", internal: [own] }, [`cluster IP 10.96.0.10 80->8080/17 1+0 0 ${here} pod-7`]],
    ["without endpoints: none", {}, { ...whole, internal: [], external: [] }, []],
    [
      "for cluster IPs alone",
      { proxyAll: false },
      whole,
      [`cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-7 192.168.2.9`],
    ],
    [
      "where node ports do not answer at the node's address",
      { nodePorts: false },
      { nodePort: 30_080, internal: [own], external: [own] },
      [`cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-7`],
    ],
    [
      "with health checks: TCP, one per load balancer's address",
      { healthEndpoint: "host" },
      { ...whole, protocol: "udp", external: [own], keepsClient: true, healthCheckNodePort: 32_000, externalIps: [] },
      [
        `cluster IP 10.96.0.10 80->8080/17 1+0 0 ${here} pod-7 192.168.2.9`,
        `node port * 30080->8080/17 1+18 0 ${here} pod-7`,
        `load balancer IP 203.0.113.1 80->8080/17 1+16 0 ${here} pod-7`,
        `health port 203.0.113.1 32000->32000/6 0+0 0 ${here} host`,
      ],
    ],
    [
      "whose remote endpoint has the address of a pod here: the pod",
      {},
      { internal: [endpoint("192.168.1.8")] },
      [`cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-8`],
    ],
    [
      "whose remote endpoint is no pod any more, in this node's subnet: without it",
      {},
      { internal: [own, endpoint("192.168.1.99")] },
      [`cluster IP 10.96.0.10 80->8080/6 1+0 0 ${here} pod-7`],
    ],
    [
      "of an IPv6 part on a network that has it",
      { ipv6: { address: ip("fd01::1") }, local: new Map([["fd00::7", "pod-7"]]), healthEndpoint: "host" },
      {
        key: "default/web:http/6",
        clusterIp: ip("fd96::a"),
        nodePort: 30_080,
        ingressIps: [ip("2001:db8::1")],
        internal: [endpoint("fd00::7", true), endpoint("fd00:2::9")],
        external: [endpoint("fd00::7", true)],
        keepsClient: true,
        healthCheckNodePort: 32_000,
      },
      [
        "cluster IP fd96::a 80->8080/6 3+0 0 from fd01::1 to pod-7 fd00:2::9",
        "node port * 30080->8080/6 3+18 0 from fd01::1 to pod-7",
        "load balancer IP 2001:db8::1 80->8080/6 3+16 0 from fd01::1 to pod-7",
        "health port 2001:db8::1 32000->32000/6 2+0 0 from fd01::1 to host",
      ],
    ],
  ])("%s", (_, view, service, expected) => {
    const wanted = wantedOf([port(service)], { ...l2Bridge, ...view });
    expect([drawn(wanted), refusals(wanted)]).toEqual([expected, []]);
  });
});

describe("the source address on an overlay", () => {
  test.each<[string, readonly ReturnType<typeof endpoint>[], string]>([
    ["of pods alone: the reserved one", [own, other], "192.168.1.254"],
    ["of a peer node itself: the node's own", [own, endpoint("10.0.0.3")], "10.0.0.1"],
    ["of somebody outside: the node's own", [own, other, endpoint("203.0.113.80")], "10.0.0.1"],
  ])("%s", (_, internal, expected) => {
    const wanted = wantedOf([port({ internal })], overlay);
    expect([...wanted.balancers.values()].map(({ sourceVip }) => sourceVip)).toEqual([expected]);
  });
});

test("an overlay wants an endpoint per cluster IP, also of a service without endpoints, and one to speak from", () => {
  const wanted = wantedOf(
    [port({ internal: [] }), port({ key: "default/web:https", port: 443, internal: [] })],
    overlay,
  );
  expect([...wanted.endpoints.values()]).toEqual([
    { ip: "10.96.0.10", mac: "00-15-5D-01-02-03", provider: "10.0.0.1", isRemote: true },
    { ip: "192.168.1.254", mac: "00-15-5D-01-02-03", isRemote: false },
  ]);
});

test.each([
  ["192.168.2.9", "02-11-C0-A8-02-09", "10.0.0.3"],
  ["10.0.0.3", "02-11-0A-00-00-03", "10.0.0.3"],
  ["203.0.113.80", "02-11-CB-00-71-50", "10.0.0.1"],
])("an endpoint at %s has the address %s, on an overlay behind %s", (address, mac, provider) => {
  const service = port({ internal: [endpoint(address)] });
  expect(wantedOf([service], overlay).endpoints.get(address)).toEqual({ ip: address, mac, provider, isRemote: true });
  expect([...wantedOf([service], l2Bridge).endpoints.values()]).toEqual([{ ip: address, mac, isRemote: true }]);
});

describe("what HNS cannot do is told, and", () => {
  const many = Array.from({ length: 65 }, (_, i) => endpoint(`192.168.2.${i + 1}`));
  const old = { features: features("9.2") };
  test.each<[string, Partial<NodeView>, Partial<ServicePort>, readonly string[], readonly string[]]>([
    [
      "several target ports: nothing goes to the wrong one",
      {},
      { internal: [own, endpoint("192.168.1.8", true, 8081)] },
      [],
      ["cluster IP 10.96.0.10: its endpoints listen at several ports (8080, 8081), and HNS leads to one"],
    ],
    ["65 endpoints with direct server return are fine", {}, { internal: many }, ["cluster IP"], []],
    [
      "65 endpoints without: none, while the cluster IP has its own",
      {},
      { internal: many, external: many, nodePort: 30_080 },
      ["cluster IP"],
      ["node port 30080: it has 65 endpoints, and HNS takes 64 without direct server return"],
    ],
    ["SCTP", {}, { protocol: "sctp", internal: [own] }, [], ["HNS balances TCP and UDP alone"]],
    [
      "IPv6 where the network has none",
      {},
      { clusterIp: ip("fd96::a"), internal: [own] },
      [],
      ["the HNS network of type L2Bridge has no IPv6"],
    ],
    [
      "an overlay in a version that knows no subnets of other nodes",
      { ...overlay, features: features("9.1") },
      { internal: [own] },
      [],
      ["HNS 9.1 knows no subnets of other nodes on an overlay"],
    ],
    [
      "who may come to a load balancer's address: nobody",
      {},
      { ...whole, sourceRanges: [cidr("192.0.2.0/24")] },
      ["cluster IP", "node port", "external IP"],
      ["the load balancer's addresses are closed: HNS cannot bound who comes to them (loadBalancerSourceRanges)"],
    ],
    [
      "a time of affinity: the client stays longer",
      {},
      { internal: [own], affinitySeconds: 60 },
      ["cluster IP"],
      ["clients keep their endpoint longer than the 60 s: HNS knows no time"],
    ],
    [
      "affinity at all, in an old version",
      { features: features("11.10") },
      { internal: [own], affinitySeconds: 10_800 },
      ["cluster IP"],
      ["clients do not keep their endpoint: HNS 11.10 has no session affinity"],
    ],
    [
      "direct server return, in an old version",
      old,
      { internal: [own], external: [own], nodePort: 30_080, keepsClient: true, preservesDestination: true },
      ["cluster IP", "node port"],
      [
        "clients do not keep their addresses: HNS 9.2 has no direct server return",
        "destinations are not preserved: HNS 9.2 has no direct server return",
      ],
    ],
    [
      "an endpoint that is the node itself: the others serve",
      {},
      { internal: [own, endpoint("10.0.0.1", true)] },
      ["cluster IP"],
      ["cluster IP 10.96.0.10: HNS does not lead to the node itself (10.0.0.1), one of its endpoints"],
    ],
  ])("%s", (_, view, service, made, reasons) => {
    const wanted = wantedOf([port(service)], { ...l2Bridge, ...view });
    expect([[...wanted.balancers.values()].map(({ kind }) => kind), refusals(wanted)]).toEqual([made, reasons]);
  });

  test("without direct server return nothing has its flag", () => {
    const wanted = wantedOf([port({ ...whole, keepsClient: true })], { ...l2Bridge, ...old });
    expect([...wanted.balancers.values()].map(({ flags }) => flags)).toEqual([0, 0, 0, 0]);
  });

  test("an address that two services want is the first one's", () => {
    const taking = (key: string): ServicePort =>
      port({
        key,
        clusterIp: ip(key === "a/a:" ? "10.96.0.1" : "10.96.0.2"),
        externalIps: [ip("198.51.100.1")],
        internal: [own],
        external: [own],
      });
    const wanted = wantedOf([taking("b/b:"), taking("a/a:")], l2Bridge);
    expect(wanted.balancers.get("198.51.100.1 6 80")?.key).toBe("a/a:");
    expect(wanted.refused).toEqual([{ key: "b/b:", reason: 'external IP 198.51.100.1: "a/a:" has it already' }]);
  });

  test("two ports of a service share one health port", () => {
    const both = ["http", "https"].map((name, i) =>
      port({ ...whole, key: `default/web:${name}`, port: 80 + i, nodePort: 30_080 + i, healthCheckNodePort: 32_000 }),
    );
    const wanted = wantedOf(both, { ...l2Bridge, healthEndpoint: "host" });
    expect([
      [...wanted.balancers.values()].filter(({ kind }) => kind === "health port").length,
      wanted.refused,
    ]).toEqual([1, []]);
  });

  test("a pod that HNS does not have yet is awaited", () => {
    const wanted = wantedOf([port({ internal: [own, endpoint("192.168.1.50", true)] })], l2Bridge);
    expect([drawn(wanted).length, [...wanted.awaited]]).toEqual([1, [["192.168.1.50", ["default/web:http"]]]]);
  });
});
