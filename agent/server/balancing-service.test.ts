import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import type { BalancedService } from "../../shared/proto/daemon-services.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import type { ServicePort } from "../datapath/services.ts";
import type { NodeServices } from "../services/mod.ts";
import { balancingRpcs } from "./balancing-service.ts";

const at = (address: string, isLocal: boolean) => ({ ip: parseIp(address)!, port: 8080, weight: 100, isLocal });
const port: ServicePort = {
  ...{ key: "x/web", protocol: "tcp", port: 80, nodePort: 30_080, clusterIp: parseIp("10.96.0.1")! },
  ...{ externalIps: [parseIp("192.0.2.1")!], ingressIps: [], sourceRanges: [parseCidr("10.0.0.0/8")!] },
  ...{ internal: [at("10.0.0.1", true), at("fd00::1", false)], external: [at("10.0.0.1", true)] },
  ...{ cluster: [at("fd00::1", false)], keepsClient: true, preservesDestination: false },
};

type Balanced = Pick<NodeServices, "wanted" | "refusalOf" | "trace">;
const pods = [
  { ip: parseIp("10.0.0.1")!, pod: "x/a" },
  { ip: parseIp("fd00::1")!, pod: "x/a" },
];

async function listed(of: Balanced | undefined): Promise<BalancedService[]> {
  const [rpc] = balancingRpcs(
    () => of,
    () => pods,
  );
  const answers = rpc?.handle({}, {} as CallContext) as AsyncIterable<BalancedService>;
  return await Array.fromAsync(answers);
}

const packets: unknown[] = [];
/** What the model says. */
const traced: Balanced = {
  wanted: new Map(),
  refusalOf: (key) => (key === port.key ? "too many" : undefined),
  trace: (packet) => {
    packets.push(packet.from);
    const endpoints = [at("10.0.0.1", true), { ...at("fd00::1", false), weight: 300 }];
    return { outcome: "balanced", key: port.key, reasons: ["It is"], endpoints };
  },
};

async function ask(sender: string, address = "10.96.0.1", number = 80, protocol = "tcp"): Promise<unknown> {
  const [, rpc] = balancingRpcs(
    () => traced,
    () => pods,
  );
  return await rpc?.handle({ address, port: number, protocol, sender }, {} as CallContext);
}

test("asks the model for a sender of each kind, and tells what it says with each endpoint's share", async () => {
  expect(await ask("x/a")).toEqual({
    ...{ outcome: "balanced", key: "x/web" },
    reasons: ["It is", "It is not in force as it is to be: too many"],
    endpoints: [
      { address: "10.0.0.1:8080", local: true, percent: 25 },
      { address: "[fd00::1]:8080", local: false, percent: 75 },
    ],
  });
  for (const sender of ["10.0.0.1", "pod", "outside", "192.0.2.200"]) await ask(sender);
  const ips = pods.map(({ ip }) => ip);
  expect(packets).toEqual([
    { t: "pod", ips },
    { t: "pod", ips: ips.slice(0, 1) },
    { t: "pod", ips: [] },
    { t: "outside", ips: [] },
    { t: "outside", ips: [parseIp("192.0.2.200")] },
  ]);
  await ask("host");
  expect(packets.at(-1)).toMatchObject({ t: "host" });
  await expect(ask("x/nobody")).rejects.toThrow('this node has no pod "x/nobody"');
  await expect(ask("pod", "nowhere")).rejects.toThrow('"nowhere" with port 80/tcp is nothing to ask for');
  await expect(ask("pod", "10.96.0.1", 80, "icmp")).rejects.toThrow("80/icmp is nothing");
});

test("tells each port of each service, and for whom its endpoints answer", async () => {
  const services = { ...traced, wanted: new Map([[port.key, port]]), refusalOf: () => "too many" };
  expect(await listed(services)).toEqual([
    {
      ...{ key: "x/web", protocol: "tcp", clusterIp: "10.96.0.1", port: 80, nodePort: 30_080 },
      ...{ externalIps: ["192.0.2.1"], ingressIps: [], restricted: true, sourceRanges: ["10.0.0.0/8"] },
      ...{ affinitySeconds: 0, keepsClient: true, healthCheckNodePort: 0, refused: "too many" },
      endpoints: [
        { address: "[fd00::1]:8080", local: false, internal: true, external: false, cluster: true },
        { address: "10.0.0.1:8080", local: true, internal: true, external: true, cluster: false },
      ],
    },
  ]);
  await expect(listed(undefined)).rejects.toThrow("the agent balances no services");
});
