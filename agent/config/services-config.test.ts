import { expect, test } from "vitest";
import { parseCidr } from "../../shared/net/ip.ts";
import type { ServicesConfig } from "./agent-config.ts";
import { filesOf } from "./own-files.ts";
import { parseAgentConfig } from "./parse-agent-config.ts";

const least = "networks:\n  - { name: pods, subnets: [10.1.0.0/24], bridge: br0 }\n";

const parsed = (text: string) => parseAgentConfig(`${least}${text}\n`, "agent.yaml");

function servicesOf(text: string): ServicesConfig | undefined {
  const read = parsed(text);
  if (read.t === "wrong") throw new Error(read.problems.join("\n"));
  return read.config.services;
}

const usual = { cidrs: [parseCidr("10.96.0.0/16")], proxyAll: true, nodePortAddresses: [] };

test.each([
  ["", undefined],
  ["services: {}", { from: "cluster", ...usual }],
  [
    "services: { from: file, file: /s.yaml, proxyAll: false }",
    { from: "file", file: "/s.yaml", ...usual, proxyAll: false },
  ],
  ['services: { cidrs: ["fd00:96::/112"] }', { from: "cluster", ...usual, cidrs: [parseCidr("fd00:96::/112")] }],
  // The older spelling, of Open vSwitch alone.
  [
    "dataPath: ovs\novs: { services: { file: /o.json, cidrs: [10.97.0.0/16] } }",
    { from: "file", file: "/o.json", ...usual, cidrs: [parseCidr("10.97.0.0/16")], proxyAll: false },
  ],
  ["dataPath: bridge\novs: { services: { file: /o.json } }", undefined],
  [
    "dataPath: ovs\novs: { services: { cidrs: [10.97.0.0/16] } }\nservices: {}",
    { from: "cluster", ...usual, cidrs: [parseCidr("10.97.0.0/16")] },
  ],
  // Where the nodes come from, the services do too.
  [
    "nodes: { registry: { type: kubernetes, server: 'https://h:1', token: /t, ca: /c } }\nservices: { token: /mine }",
    { from: "cluster", server: "https://h:1", token: "/mine", ca: "/c", ...usual },
  ],
  [
    "nodes: { registry: { type: static, file: /n } }\nservices: { server: 'https://h:1' }",
    { from: "cluster", server: "https://h:1", ...usual },
  ],
])("%s", (text, services) => expect(servicesOf(text)).toEqual(services as ServicesConfig | undefined));

test.each([
  ["services: { from: file }", 'agent.yaml:3:11: "services" is without "file", wanted it where "from" is "file"'],
  ["services: { file: /s }", '"services.file" is there while "from" is "cluster", wanted "from: file" or no "file"'],
  ["services: { cidrs: [10.0.0.0/16, 10.1.0.0/16] }", '"services.cidrs[1]" is "10.1.0.0/16" of the same family'],
  ["services: { nodePortAddresses: [10.0.0.1/16] }", '"services.nodePortAddresses[0]" is "10.0.0.1/16", wanted'],
  [
    "dataPath: ovs\novs: { services: { file: /o } }\nservices: {}",
    '"ovs.services.file" is there beside the section "services", wanted one of both',
  ],
])("what is wrong is named with its place: %s", (text, problem) => {
  const read = parsed(text);
  expect(read.t === "wrong" ? read.problems.join("\n") : "").toContain(problem);
});

test("the files that it names are the agent's own", () => {
  const read = parsed("dataPath: ovs\novs: { services: { file: /o } }");
  const other = parsed("services: { token: /t, ca: /c }");
  const files = [read, other].map((each) => (each.t === "ok" ? filesOf("agent.yaml", each.config) : []));
  expect(files).toEqual([
    ["agent.yaml", "/o"],
    ["agent.yaml", "/c", "/t"],
  ]);
});
