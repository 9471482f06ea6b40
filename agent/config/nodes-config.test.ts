import { afterEach, expect, test } from "vitest";
import { formatIp } from "../../shared/net/ip.ts";
import { nodeVariables } from "./nodes-config.ts";
import { parseAgentConfig } from "./parse-agent-config.ts";

/** As one text for all nodes has it, with what it says of this one in these keys. */
function parse({ node = "", hns = "", dataPath = "bridge" } = {}): readonly string[] {
  const network = `{ name: pods, bridge: b, subnets: [10.1.0.0/24], hns: { ${hns} } }`;
  const text = `{ dataPath: ${dataPath}, networks: [${network}], nodes: { ${node} registry: { type: kubernetes } } }`;
  const parsed = parseAgentConfig(text, "agent.yaml");
  if (parsed.t !== "ok") return parsed.problems;
  const { nodes, networks } = parsed.config;
  return [
    nodes?.name ?? "",
    ...networks.flatMap((each) => (each.hns === undefined ? [] : formatIp(each.hns.nodeAddress))),
  ];
}

function told(name: string, address: string): void {
  process.env[nodeVariables.name] = name;
  process.env[nodeVariables.address] = address;
}

afterEach(() => {
  for (const name of Object.values(nodeVariables)) delete process.env[name];
});

test("what a pod is told of its node fills what one text for all nodes leaves out", () => {
  told("worker-7.example", "192.0.2.7");
  expect(parse()).toEqual(["worker-7.example", "192.0.2.7"]);
  expect(parse({ node: "name: said,", hns: "nodeAddress: 192.0.2.8" })).toEqual(["said", "192.0.2.8"]);
});

test("an empty variable says nothing", () => {
  told("", "");
  expect(parse({ node: "name: said," })).toEqual([
    expect.stringContaining('"networks[0].hns" is without "nodeAddress"'),
  ]);
});

test.each([
  ["Worker_7", "192.0.2.7", `"Worker_7" of ${nodeVariables.name} will not do for it`],
  ["worker-7", "2001:db8::7", `"2001:db8::7" of ${nodeVariables.address} is no IPv4 address`],
  ["worker-7", "10.1.0.9", '"10.1.0.9", an address of the pods'],
])("a wrong one is named: %s, %s", (name, address, is) => {
  told(name, address);
  expect(parse({ dataPath: "hns" })).toEqual([expect.stringContaining(is)]);
});
