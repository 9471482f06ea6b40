import { expect, test } from "vitest";
import { formatCidr } from "../../shared/net/ip.ts";
import { parseAgentConfig } from "../config/parse-agent-config.ts";
import { withSubnets } from "./join.ts";
import { nodeOfText } from "./node-text.ts";

function subnetsOf(network: string, subnets: string[], dataPath = "bridge"): string[] {
  const more = "  - { name: more, subnets: [10.9.0.0/24], bridge: b, hns: { nodeAddress: 192.0.2.1, network: m } }\n";
  const text = `dataPath: ${dataPath}\nnetworks:\n  - { name: pods, bridge: a${network} }\n${more}nodes: { name: n, registry: { type: static, file: /f } }\n`;
  const parsed = parseAgentConfig(text, "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join("\n"));
  const changed = withSubnets(parsed.config, nodeOfText({ name: "n", addresses: ["192.0.2.1"], subnets }));
  return changed.networks[0]?.subnets.map(formatCidr) ?? [];
}

test("the first network has what the registry gives, also where the configuration says the same", () => {
  expect(subnetsOf("", ["10.1.0.0/24", "fd00:1::/64"])).toEqual(["10.1.0.0/24", "fd00:1::/64"]);
  expect(subnetsOf(", subnets: [10.1.0.0/24]", ["10.1.0.0/24"])).toEqual(["10.1.0.0/24"]);
});

test.each([
  ["nothing", "", [], "no subnet, which are no subnets for pods"],
  ["two of one family", "", ["10.1.0.0/24", "10.2.0.0/24"], "no subnets for pods"],
  ["a block without room", "", ["10.1.0.0/31"], "no subnets for pods"],
  ["host bits", "", ["10.1.0.1/24"], "no subnets for pods"],
  ["another than is configured", ", subnets: [10.3.0.0/24]", ["10.1.0.0/24"], 'the configuration says "10.3.0.0/24"'],
  ["one with the node in it", "", ["192.0.2.0/24"], 'with the node\'s own address "192.0.2.1" in it'],
  ["another network's", "", ["10.8.0.0/15"], 'a part of network "more" or around it'],
  ["IPv6 with a small MTU", ", mtu: 1000", ["fd00::/64"], "and an MTU of 1000"],
])("%s is refused", (_name, network, subnets, is) => {
  expect(() => subnetsOf(network, subnets)).toThrow(is);
});

test("HNS takes one of IPv4", () => {
  const hns = ", hns: { nodeAddress: 192.0.2.1 }";
  expect(subnetsOf(hns, ["10.1.0.0/24"], "hns")).toEqual(["10.1.0.0/24"]);
  expect(() => subnetsOf(hns, ["10.1.0.0/24", "fd00::/64"], "hns")).toThrow(
    'and "dataPath" is "hns", wanted one of IPv4',
  );
});
