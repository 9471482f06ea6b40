import { expect, test } from "vitest";
import { parseAgentConfig } from "./parse-agent-config.ts";

const file = (hns: string, ovs: string, more = ""): string =>
  [
    "dataPath: hns",
    "networks:",
    `  - { name: pods, subnets: [10.1.0.0/24], bridge: br-int, hns: { nodeAddress: 192.168.1.5${hns} } }${more}`,
    `ovs: { database: "tcp:127.0.0.1", management: "tcp:127.0.0.1"${ovs} }\n`,
  ].join("\n");

test('a section "ovs" beside "dataPath: hns" has the extension of the switch forward', () => {
  const parsed = parseAgentConfig(file("", ""), "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  expect(parsed.config.networks[0]?.hns).toMatchObject({ type: "Transparent", ovsExtension: true });
  const alone = parseAgentConfig(file("", "").replace(/ovs: .*/, ""), "agent.yaml");
  expect(alone).toMatchObject({ config: { networks: [{ hns: { ovsExtension: false } }] } });
});

test.each([
  ["another type of network", ", type: L2Bridge", "", '"networks[0].hns.type" is "L2Bridge" beside "ovs", wanted "Tr'],
  ["no extension", ", ovsExtension: false", "", '"networks[0].hns.ovsExtension" is false beside "ovs", wanted true'],
  ["a card named twice", "", ", uplink: eth1", '"ovs.uplink" is "eth1", wanted the card as "hns.adapter"'],
  ["addresses twice", "", ", nodeAddresses: [192.168.1.5]", '"ovs.nodeAddresses" is there where "dataPath" is "hns"'],
  ["a tunnel that Windows lacks", "", ", tunnel: gre", '"ovs.tunnel" is "gre", wanted "geneve", "vxlan" or "stt"'],
  ["a mode that Windows lacks", "", ", mode: networkPolicyOnly", '"ovs.mode" is "networkPolicyOnly", wanted "encap"'],
  ["services of IPv6", "", ', services: { cidrs: ["fd00::/112"] }', '"ovs.services.cidrs[0]" is "fd00::/112", wanted'],
])("%s is a fault", (_what, hns, ovs, wanted) => {
  const parsed = parseAgentConfig(file(hns, ovs), "agent.yaml");
  if (parsed.t === "ok") throw new Error("it was taken");
  expect(parsed.problems).toHaveLength(1);
  expect(parsed.problems[0]).toContain(wanted);
});

test("has one network", () => {
  const second = "\n  - { name: b, subnets: [10.2.0.0/24], bridge: b, hns: { nodeAddress: 192.168.1.5, network: b } }";
  const parsed = parseAgentConfig(file("", "", second), "agent.yaml");
  expect(parsed).toMatchObject({ problems: [expect.stringContaining('"networks[1]" is a second network')] });
});
