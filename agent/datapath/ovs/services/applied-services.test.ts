import { expect, test } from "vitest";
import { formatIp, parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { endpointAt, servicePort } from "../../../../test/fakes/service-port.ts";
import type { ServicePort } from "../../services.ts";
import { AppliedServices } from "./applied-services.ts";

const gateway = { ofport: 2, mac: "02:00:00:00:00:01", addresses: [] };
const knowing = (...blocks: readonly string[]) =>
  new AppliedServices({ podSubnets: blocks.map((block) => parseCidr(block)!), gateway, nodeAddresses: [] }, true);

const serviceWith = (...endpoints: readonly string[]): ServicePort =>
  servicePort({ key: "a", endpoints: endpoints.map((text) => endpointAt(text)) });

/** What is put into the switch for a service with this endpoint alone, where these are the node's blocks. */
function keysFor(endpoint: string, ...blocks: readonly string[]): readonly string[] {
  const ip = parseIp(endpoint)!;
  const clusterIp = ip.family === 4 ? "10.96.0.1" : "fd00:96::1";
  const service = servicePort({ key: "a", clusterIp, endpoints: [endpointAt(ip)] });
  const applied = knowing(...blocks);
  return [...applied.step([...applied.changesTo(new Map([["a", service]]))]).changes.keys()];
}

test.each([
  ["the first of a block", "10.10.1.0", ["10.10.1.0/24"], true],
  ["the last of a block", "10.10.1.255", ["10.10.1.0/24"], true],
  ["the one before", "10.10.0.255", ["10.10.1.0/24"], false],
  ["the one after", "10.10.2.0", ["10.10.1.0/24"], false],
  ["one of the second block", "fd00:10::9", ["10.10.1.0/24", "fd00:10::/64"], true],
  ["the same number in the other family", "::a0a:102", ["10.10.1.0/24"], false],
  ["any, where another plugin gives addresses out", "192.0.2.7", [], true],
] as const)("an endpoint may be a pod of this node: %s", (_which, endpoint, blocks, isLocal) => {
  const hairpin = isLocal ? [`service-hairpin/${endpoint}`] : [];
  expect(keysFor(endpoint, ...blocks)).toEqual(["service/a", ...hairpin]);
});

test("a change of which nobody knows whether the switch has it leaves what was known, and goes with the rest", () => {
  const applied = knowing();
  const stepTo = (service?: ServicePort) =>
    applied.step([...applied.changesTo(new Map(service === undefined ? [] : [["a", service]]))]);
  stepTo(serviceWith("10.10.1.2")).confirm();
  stepTo(serviceWith("10.10.1.3")).markDirty();
  const [change] = applied.changesTo(new Map());
  expect(change?.before?.places[0]?.inside.map(({ ip }) => formatIp(ip))).toEqual(["10.10.1.2"]);
  expect([...stepTo().changes]).toEqual([
    ["service/a", undefined],
    ["service-hairpin/10.10.1.2", undefined],
    ["service-hairpin/10.10.1.3", undefined],
  ]);
});
