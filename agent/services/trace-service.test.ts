import { expect, test } from "vitest";
import { formatIp, type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { endpointAt, servicePort } from "../../test/fakes/service-port.ts";
import type { ServicePort } from "../datapath/services.ts";
import { type Balanced, type Sender, traceService } from "./trace-service.ts";

const local = endpointAt("10.0.0.1", 8080, 100, true);
const far = endpointAt("10.0.1.1");
const all = [local, far];
const ip = (text: string): Ip => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;
const addresses = { externalIps: ["203.0.113.1"], ingressIps: ["203.0.113.9"], nodePort: 30_080 };
const open = servicePort({ ...addresses, endpoints: all });
const closed = servicePort({
  ...{ ...addresses, endpoints: all, internal: [local], external: [local], keepsClient: true, affinitySeconds: 60 },
  sourceRanges: [cidr("198.51.100.0/24")],
});
const elsewhere = servicePort({ ...addresses, endpoints: [far], internal: [], external: [], keepsClient: true });
const nobody = servicePort({ ...addresses, sourceRanges: [] });
const senders: Readonly<Record<string, Sender>> = {
  pod: { t: "pod", ips: [ip("10.0.0.9")] },
  endpoint: { t: "pod", ips: [local.ip] },
  host: { t: "host", ips: [ip("192.0.2.1")] },
  outside: { t: "outside", ips: [] },
  friend: { t: "outside", ips: [ip("198.51.100.7")] },
  stranger: { t: "outside", ips: [ip("192.0.2.77")] },
};
const places: Readonly<Record<string, readonly [Ip, number]>> = {
  cluster: [ip("10.96.0.10"), 80],
  external: [ip("203.0.113.1"), 80],
  ingress: [ip("203.0.113.9"), 80],
  node: [ip("192.0.2.1"), 30_080],
  otherNode: [ip("192.0.2.2"), 30_080],
};
const balanced: Balanced = {
  ...{ ports: [], proxyAll: true, nodePortAddresses: [], nodeAddresses: [ip("192.0.2.1")] },
};

const traced = (service: ServicePort, place: string, from: string, around: Partial<Balanced> = {}) =>
  traceService(
    { ...balanced, ports: [service], ...around },
    { ip: places[place]![0], port: places[place]![1], protocol: "tcp", from: senders[from]! },
  );
const ips = (of: { readonly endpoints: readonly { readonly ip: Ip }[] }) =>
  of.endpoints.map(({ ip }) => formatIp(ip)).join(" ");

test.each<[service: ServicePort, place: string, from: string, outcome: string, endpoints: string, why: RegExp]>([
  [open, "cluster", "pod", "balanced", "10.0.0.1 10.0.1.1", /the cluster IP of "default\/web:http".*all answer/],
  [open, "cluster", "endpoint", "balanced", "10.0.0.1 10.0.1.1", /may come to itself/],
  [open, "node", "outside", "balanced", "10.0.0.1 10.0.1.1", /the node port of .*Cluster.*an address of this node/],
  [open, "ingress", "stranger", "balanced", "10.0.0.1 10.0.1.1", /a load balancer's address/],
  [open, "otherNode", "outside", "left alone", "", /^No service has 192.0.2.2 port 30080\/tcp on this node$/],
  [closed, "cluster", "host", "balanced", "10.0.0.1", /internalTrafficPolicy: Local.*keeps its endpoint for 60 s/],
  [closed, "external", "stranger", "balanced", "10.0.0.1", /an external IP of .*Local.*see the client's address/],
  [closed, "external", "pod", "balanced", "10.0.0.1 10.0.1.1", /To pods and the node all answer/],
  [
    closed,
    "ingress",
    "stranger",
    "dropped",
    "",
    /let in 198.51.100.0\/24: not the sender, 192.0.2.77; the packet is dropped/,
  ],
  [closed, "ingress", "friend", "balanced", "10.0.0.1", /also the sender, 198.51.100.7/],
  [closed, "ingress", "outside", "balanced", "10.0.0.1", /the sender's address is not said/],
  [closed, "ingress", "pod", "dropped", "", /not the sender, 10.0.0.9/],
  [elsewhere, "cluster", "pod", "dropped", "", /internalTrafficPolicy: Local.*it has none/],
  [elsewhere, "node", "outside", "dropped", "", /externalTrafficPolicy: Local.*it has none/],
  [elsewhere, "node", "host", "balanced", "10.0.1.1", /whatever/],
  [nobody, "cluster", "pod", "refused", "", /No endpoint is ready or drains/],
  [nobody, "ingress", "outside", "dropped", "", /let in nobody; the packet is dropped/],
])("%# to %s from %s", (service, place, from, outcome, endpoints, why) => {
  const found = traced(service, place, from);
  expect([found.outcome, ips(found)]).toEqual([outcome, endpoints]);
  expect(found.reasons.join(". ")).toMatch(why);
  expect(found.key).toBe(outcome === "left alone" ? undefined : "default/web:http");
});

test("what the configuration leaves to others goes on as it is", () => {
  const some = { proxyAll: false };
  expect(traced(open, "cluster", "pod", some).outcome).toBe("balanced");
  for (const [place, from] of [
    ["cluster", "host"],
    ["cluster", "outside"],
    ["external", "pod"],
    ["node", "outside"],
  ] as const)
    expect(traced(open, place, from, some)).toMatchObject({ outcome: "left alone", endpoints: [] });
  const blocks = (block: string) => traced(open, "node", "outside", { nodePortAddresses: [cidr(block)] }).outcome;
  expect([blocks("192.0.2.0/24"), blocks("10.0.0.0/8")]).toEqual(["balanced", "left alone"]);
});

test("another protocol, port or family is another service's", () => {
  const udp = servicePort({ key: "x/udp", protocol: "udp" });
  const six = servicePort({ key: "x/six", clusterIp: "fd00::1", nodePort: 30_080 });
  const ask = (text: string, port: number, protocol: "tcp" | "udp") =>
    traceService({ ...balanced, ports: [udp, six, open] }, { ip: ip(text), port, protocol, from: senders["pod"]! }).key;
  expect([ask("10.96.0.10", 80, "tcp"), ask("10.96.0.10", 80, "udp"), ask("10.96.0.10", 81, "tcp")]).toEqual([
    "default/web:http",
    "x/udp",
    undefined,
  ]);
  expect([ask("fd00::1", 80, "tcp"), ask("192.0.2.1", 30_080, "tcp")]).toEqual(["x/six", "default/web:http"]);
});
