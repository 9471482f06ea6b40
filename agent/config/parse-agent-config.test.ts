import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { describe, expect, test } from "vitest";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { keysOf } from "../../shared/schema/mod.ts";
import { agentSchema } from "./agent-config.ts";
import { parseAgentConfig } from "./parse-agent-config.ts";

const sample = readFileSync(new URL("../../conf/agent.yaml", import.meta.url), "utf8");
const least = "networks:\n  - { name: pods, subnets: [10.1.0.0/24], bridge: br0 }\n";

const hns = (networks: string): string => `dataPath: hns\nnetworks:\n${networks}`;
const ofHns = (rest: string, subnets = "10.1.0.0/24"): string =>
  hns(`  - { name: pods, subnets: [${subnets}], bridge: br-int, hns: { nodeAddress: 192.168.1.5${rest} } }\n`);

const ofNodes = (registry: string, more = ""): string =>
  `networks:\n  - { name: pods, bridge: br0 }\n${more}nodes:\n  registry: ${registry}\n`;
const ofEtcd = (endpoints: string, rest = ""): string => ofNodes(`{ type: etcd, endpoints: [${endpoints}]${rest} }`);

const problemsOf = (text: string): readonly string[] => {
  const parsed = parseAgentConfig(text, "agent.yaml");
  return parsed.t === "wrong" ? parsed.problems : [];
};

describe("the sample file", () => {
  test("is in order and says what the defaults are", () => {
    const parsed = parseAgentConfig(sample, "conf/agent.yaml");
    const short = parseAgentConfig(least, "least");
    if (parsed.t !== "ok" || short.t !== "ok") throw new Error(JSON.stringify([parsed, short]));
    const { networks, cni, ovs, ...others } = parsed.config;
    const { networks: _, cni: cniDefaults, ...defaults } = short.config;
    expect(others).toEqual(defaults);
    expect({ ...cni, plugins: undefined, cniVersions: undefined }).toEqual(cniDefaults);
    expect(networks[0]?.subnets).toHaveLength(2);
  });

  test("has a section of nodes that is in order where it is no comment, and so is each other registry", () => {
    const registryOf = (text: string) => {
      const parsed = parseAgentConfig(text, "agent.yaml");
      if (parsed.t !== "ok") throw new Error(parsed.problems.join("\n"));
      return parsed.config.nodes?.registry;
    };
    const first = registryOf(sample.replaceAll(/^#(?=[a-z]| {2})/gm, ""));
    const defaults = registryOf(`${least}nodes: { registry: { type: etcd, endpoints: ["https://h:1"] } }\n`);
    expect({ ...first, ...defaults }).toEqual(first && { ...first, endpoints: ["https://h:1"] });
    const others = [...sample.matchAll(/^# {2}#registry:\n((?:# {2}# {2}.*\n)+)/gm)].map(([, keys = ""]) =>
      registryOf(`${least}nodes:\n  registry:\n${keys.replaceAll("#  #", "  ")}`),
    );
    expect(others.map((registry) => registry?.type)).toEqual(["static", "kubernetes"]);
  });

  test("has every key that the parser knows", () => {
    const keys = keysOf(agentSchema);
    expect(keys).toContain("networks.subnets");
    for (const key of keys) expect(sample).toMatch(new RegExp(`^[\\s#]*(- )?${key.split(".").at(-1)}:`, "m"));
  });
});

describe("what is wrong is named with its place, its value and what was wanted", () => {
  test.each([
    [
      "an unknown key",
      `${least}sockt: /x\n`,
      ['agent.yaml:3:1: "sockt" is an unknown key (did you mean "socket"?), wanted one of socket, dataDir'],
    ],
    [
      "a key that every JavaScript object has",
      `${least}constructor: {}\n`,
      ['agent.yaml:3:1: "constructor" is an unknown key'],
    ],
    ["a wrong type", `${least}socket: 7\n`, ['agent.yaml:3:9: "socket" is 7, wanted an absolute path']],
    ["a relative path", `${least}dataDir: lib\n`, ['agent.yaml:3:10: "dataDir" is "lib", wanted an absolute path']],
    [
      "a wrong word",
      `${least}logLevel: loud\n`,
      ['"logLevel" is "loud", wanted one of "debug", "info", "warn", "error"'],
    ],
    [
      "a number out of bounds",
      `${least}cooldownMs: -1\n`,
      ['"cooldownMs" is -1, wanted a whole number from 0 to 86400000'],
    ],
    ["a fraction", `${least}cooldownMs: 1.5\n`, ['"cooldownMs" is 1.5, wanted a whole number']],
    ["an empty value", `${least}socket:\n`, ['agent.yaml:3:8: "socket" is empty, wanted an absolute path']],
    ["no networks", "socket: /x\n", ['agent.yaml:1:1: "networks" is missing']],
    ["an empty document", "", ['agent.yaml:1:1: "networks" is missing']],
    ["a document of another type", "- 1\n", ["the document is a list of 1 entries, wanted a map with the keys socket"]],
    ["an empty list", "networks: []\n", ['"networks" is a list of 0 entries, wanted a list of 1 to 64 entries']],
    ["broken YAML", "networks: [\n", ["agent.yaml:2:1: "]],
    ["a repeated key", `${least}socket: /a\nsocket: /b\n`, ["agent.yaml:4:1: "]],
    [
      "no name",
      "networks:\n  - { subnets: [10.1.0.0/24], bridge: br0 }\n",
      ['agent.yaml:2:5: "networks[0].name" is missing'],
    ],
    [
      "host bits in a subnet",
      "networks:\n  - name: pods\n    subnets:\n      - 10.1.0.1/24\n    bridge: br0\n",
      ['agent.yaml:4:9: "networks[0].subnets[0]" is "10.1.0.1/24", wanted a network such as'],
    ],
    [
      "addresses of the node that are nobody's or everybody's",
      `dataPath: ovs\n${least}nodes:\n  addresses: [0.0.0.0, "ff02::1"]\n  registry: { type: static, file: /n.yaml }\n`,
      [
        'agent.yaml:5:15: "nodes.addresses[0]" is "0.0.0.0", wanted an address that other nodes reach',
        'agent.yaml:5:24: "nodes.addresses[1]" is "ff02::1", wanted an address that other nodes reach',
      ],
    ],
    [
      "a subnet too small",
      "networks: [{ name: pods, subnets: [10.1.0.0/31], bridge: br0 }]\n",
      ['"networks[0].subnets[0]" is "10.1.0.0/31", wanted a network'],
    ],
    [
      "two subnets of one family",
      "networks: [{ name: pods, subnets: [10.1.0.0/24, 10.2.0.0/24], bridge: br0 }]\n",
      ['"networks[0].subnets[1]" is "10.2.0.0/24" of the same family'],
    ],
    [
      "a small MTU with IPv6",
      "networks: [{ name: pods, subnets: ['fd00::/64'], bridge: br0, mtu: 1000 }]\n",
      ['"networks[0].mtu" is 1000, wanted at least 1280 for IPv6'],
    ],
    [
      "an exclusion of no address in the network",
      "networks: [{ name: pods, subnets: [10.1.0.0/24], bridge: br0, exclude: [10.1.0.5, 10.0.0.0/8, 10.2.0.9] }]\n",
      ['"networks[0].exclude[2]" is "10.2.0.9", wanted something in 10.1.0.0/24'],
    ],
    [
      "an exclusion with host bits",
      "networks: [{ name: pods, subnets: [10.1.0.0/24], bridge: br0, exclude: [10.1.0.5/28] }]\n",
      ['"networks[0].exclude[0]" is "10.1.0.5/28", wanted an address or a block'],
    ],
    [
      "networks in each other's way, all of it",
      `${least}  - { name: pods, subnets: [10.1.0.128/25], bridge: br0 }\n`,
      [
        'agent.yaml:3:13: "networks[1].name" is "pods" for the second time',
        'agent.yaml:3:29: "networks[1].subnets[0]" is "10.1.0.128/25", a part of network "pods"',
        'agent.yaml:3:53: "networks[1].bridge" is "br0" for the second time',
      ],
    ],
    [
      "a chained plugin that leads out of the directory",
      `${least}cni: { plugins: [{ type: ../evil }] }\n`,
      ['"cni.plugins[0].type" is "../evil", wanted a plugin\'s configuration'],
    ],
    [
      "a chained plugin without a type",
      `${least}cni: { plugins: [{ snat: true }] }\n`,
      ['"cni.plugins[0].type" is missing'],
    ],
    [
      "a file name that leads elsewhere",
      `${least}cni: { fileName: ../x.conflist }\n`,
      ['"cni.fileName" is "../x.conflist", wanted a file name ending in ".conflist"'],
    ],
    [
      "versions without the one for everybody",
      `${least}cni: { cniVersion: "0.4.0", cniVersions: ["1.0.0"] }\n`,
      ['"cni.cniVersions" is without "0.4.0", wanted "cniVersion" among them'],
    ],
    [
      "a data path that there is not",
      `${least}dataPath: vlan\n`,
      ['"dataPath" is "vlan", wanted one of "bridge", "ovs", "hns"'],
    ],
    [
      "HNS without its section",
      hns("  - { name: pods, subnets: [10.1.0.0/24], bridge: br-int }\n"),
      ['agent.yaml:3:5: "networks[0]" is without "hns", wanted that section where "dataPath" is "hns"'],
    ],
    [
      "HNS without the node's address",
      hns("  - { name: pods, subnets: [10.1.0.0/24], bridge: br-int, hns: { type: L2Bridge } }\n"),
      ['"networks[0].hns" is without "nodeAddress"'],
    ],
    [
      "HNS with IPv6",
      ofHns("", "10.1.0.0/24, 'fd00::/64'"),
      ['"networks[0].subnets[1]" is "fd00::/64", wanted IPv4 where "dataPath" is "hns"'],
    ],
    [
      "a node's address that is none, an address of IPv6, and one among the pods",
      hns(
        [
          "  - { name: a, subnets: [10.1.0.0/24], bridge: a, hns: { nodeAddress: 10.1.0 } }",
          "  - { name: b, subnets: [10.2.0.0/24], bridge: b, hns: { nodeAddress: 'fd00::1' } }\n",
        ].join("\n"),
      ),
      ['"networks[0].hns.nodeAddress" is "10.1.0", wanted an IPv4', '"networks[1].hns.nodeAddress" is "fd00::1"'],
    ],
    [
      "a node's address among the pods",
      hns("  - { name: a, subnets: [10.1.0.0/24], bridge: a, hns: { nodeAddress: 10.1.0.9 } }\n"),
      ['"networks[0].hns.nodeAddress" is "10.1.0.9", an address of the pods, wanted the node\'s own'],
    ],
    [
      "an overlay without its number",
      ofHns(", type: Overlay"),
      ['"networks[0].hns.type" is "Overlay" without "vsid", wanted both'],
    ],
    ["a number without an overlay", ofHns(", vsid: 4096"), ['"networks[0].hns.vsid" is 4096, wanted it with "type"']],
    [
      "a number that HNS refuses",
      ofHns(", type: Overlay, vsid: 4095"),
      ['"networks[0].hns.vsid" is 4095, wanted a whole'],
    ],
    [
      "another type",
      ofHns(", type: NAT"),
      ['"networks[0].hns.type" is "NAT", wanted one of "Transparent", "L2Bridge"'],
    ],
    [
      "names that are more than names",
      ofHns(`, network: "a'b", adapter: "$(x)", natName: "a;b"`),
      ['"networks[0].hns.network" is "a\'b"', '"networks[0].hns.adapter" is "$(x)"', '"networks[0].hns.natName" is'],
    ],
    [
      "a policy without a type",
      ofHns(", policies: [{ Settings: {} }]"),
      ['"networks[0].hns.policies[0].Type" is no word, wanted an endpoint policy'],
    ],
    [
      "an exception that is no block",
      ofHns(", outboundNat: { exceptions: [10.0.0.1/8] }"),
      ['"networks[0].hns.outboundNat.exceptions[0]" is "10.0.0.1/8", wanted an IPv4 network'],
    ],
    [
      "another node's pods among ours",
      ofHns(", peers: [{ podSubnet: 10.1.0.0/16, gateway: 192.168.1.6 }]"),
      ['"networks[0].hns.peers[0].podSubnet" is "10.1.0.0/16", wanted another node\'s pods'],
    ],
    [
      "one HNS network for two",
      `${ofHns("")}  - { name: more, subnets: [10.2.0.0/24], bridge: b, hns: { nodeAddress: 192.168.1.5, network: Pipette } }\n`,
      ['"networks[1].hns" is a section with the HNS network "Pipette" for the second time'],
    ],
    ["a network without subnets", "networks: [{ name: pods, bridge: br0 }]\n", ['"networks[0]" is without "subnets"']],
    [
      "a second network without subnets",
      ofNodes("{ type: static, file: /n.yaml }", "  - { name: more, bridge: br1 }\n"),
      ['"networks[1]" is without "subnets", wanted them: only the first'],
    ],
    [
      "exclusions from a subnet that is not known",
      ofNodes("{ type: static, file: /n.yaml }").replace("br0", "br0, exclude: [10.1.0.5]"),
      ['"networks[0].exclude" is there without "subnets", wanted both or none'],
    ],
    ["a registry without a type", ofNodes("{ file: /n.yaml }"), ['"nodes.registry.type" is missing']],
    ["a registry of another type", ofNodes("{ type: consul }"), ['"nodes.registry.type" is "consul", wanted one of']],
    [
      "a registry's keys at another's",
      ofNodes("{ type: static, endpoints: ['http://h:1'] }"),
      ['"nodes.registry" is without "file"', '"nodes.registry.endpoints" is set, wanted it left out where "type" is'],
    ],
    [
      "endpoints that say more, or less, than a server",
      ofEtcd("'http://h:1/', 'h:1', 'ftp://h:1', 'http://u:p@h:1'"),
      [0, 1, 2, 3].map((i) => `"nodes.registry.endpoints[${i}]" is `),
    ],
    [
      "endpoints of both schemes",
      ofEtcd("'http://h:1', 'https://h:2'"),
      ['"nodes.registry.endpoints" is a mixture, wanted "http" for all or "https" for all'],
    ],
    [
      "certificates without their like",
      ofEtcd("'http://h:1'", ", ca: /ca, cert: /c"),
      ['"nodes.registry" is with one of "cert" and "key"', '"nodes.registry.endpoints" is without "https"'],
    ],
    [
      "cluster networks that nothing can be cut from, or twice",
      ofEtcd(
        "'http://h:1'",
        ", networks: [{ cidr: 10.0.0.0/24, hostBits: 9 }, { cidr: 10.0.0.0/8, hostBits: 9 }, { cidr: 'fd00::/8', hostBits: 64 }]",
      ),
      [
        '"nodes.registry.networks[0].hostBits" is 9 in "10.0.0.0/24", wanted room',
        '"nodes.registry.networks[1].cidr" is "10.0.0.0/8", a part of an earlier one',
        '"nodes.registry.networks[2].hostBits" is 64 in "fd00::/8", wanted room for 1 to 2^24 nodes',
      ],
    ],
    [
      "prefixes that would leave their place",
      ofEtcd("'http://h:1'", ", prefix: /a/../b"),
      ['"nodes.registry.prefix" is "/a/../b"'],
    ],
    [
      "a node's name, addresses and MAC that are none",
      `${ofNodes("{ type: static, file: /n.yaml }")}  name: Node_1\n  addresses: [10.0.0.1/24]\n  mac: "01:00:5e:00:00:01"\n`,
      ['"nodes.name" is "Node_1"', '"nodes.addresses[0]" is "10.0.0.1/24"', '"nodes.mac" is "01:00:5e:00:00:01"'],
    ],
    [
      "two addresses of one family",
      `${ofNodes("{ type: static, file: /n.yaml }")}  addresses: [10.0.0.1, 10.0.0.2]\n`,
      ['"nodes.addresses[1]" is "10.0.0.2" of the same family'],
    ],
    [
      "every fault, in the order of the lines",
      "socket: 1\nbogus: 2\nnetworks: [{ name: -x, subnets: [x], bridge: a/b, hairpin: maybe }]\n",
      ["agent.yaml:1:9:", "agent.yaml:2:1:", "networks[0].name", "subnets[0]", "bridge", "hairpin"],
    ],
  ])("%s", (_name, text, wanted) => {
    const problems = problemsOf(text);
    expect(problems).toHaveLength(wanted.length);
    wanted.forEach((part, i) => {
      expect(problems[i]).toContain(part);
    });
  });

  test("a bomb of aliases is refused, not unfolded", () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
    for (let i = 1; i < 10; i++)
      lines.push(
        `a${i}: &a${i} [${Array(10)
          .fill(`*a${i - 1}`)
          .join(", ")}]`,
      );
    const text = `${least}cni:\n  plugins:\n    - type: x\n${lines.map((line) => `      ${line}`).join("\n")}\n`;
    expect(problemsOf(text)).toHaveLength(1);
  });
});

describe("the section of HNS", () => {
  const read = (text: string) => {
    const parsed = parseAgentConfig(text, "agent.yaml");
    if (parsed.t !== "ok") throw new Error(parsed.problems.join("\n"));
    return parsed.config;
  };

  test("has its defaults", () => {
    const { dataPath, networks } = read(ofHns(""));
    expect(dataPath).toBe("hns");
    expect(networks[0]?.hns).toEqual({
      nodeAddress: parseIp("192.168.1.5"),
      network: "pipette",
      type: "Transparent",
      natName: "pipette-nat",
      ovsExtension: false,
      policies: [],
      peers: [],
    });
  });

  test("is read whole", () => {
    const rest = `, network: "pod net", type: Overlay, vsid: 4097, adapter: "Ethernet 2", natName: "", ovsExtension: true,
        outboundNat: { exceptions: [10.96.0.0/12] }, policies: [{ Type: ACL, Settings: { Priority: 200 } }],
        peers: [{ podSubnet: 10.2.0.0/24, gateway: 192.168.1.6 }]`;
    expect(read(ofHns(rest)).networks[0]?.hns).toEqual({
      nodeAddress: parseIp("192.168.1.5"),
      network: "pod net",
      type: "Overlay",
      vsid: 4097,
      adapter: "Ethernet 2",
      natName: "",
      ovsExtension: true,
      outboundNat: { exceptions: ["10.96.0.0/12"] },
      policies: [{ Type: "ACL", Settings: { Priority: 200 } }],
      peers: [{ podSubnet: parseCidr("10.2.0.0/24"), gateway: parseIp("192.168.1.6") }],
    });
  });

  test("beside network policies has no ACLs of its own that let anything through, unless Open vSwitch enforces them", () => {
    const acls = `policies: [{ Type: ACL, Settings: { Action: Block } }, { Type: ACL, Action: Block }, { Type: NAT },
        { Type: ACL, Settings: { Action: Allow } }, { Type: ACL, Priority: 1 }]`;
    const text = `${ofHns(`, ${acls}`)}policies: {}\n`;
    expect(problemsOf(text)).toEqual([
      expect.stringContaining('"networks[0].hns.policies[3]" is an ACL that blocks nothing, beside "policies"'),
      expect.stringContaining('"networks[0].hns.policies[4]" is an ACL that blocks nothing, beside "policies"'),
    ]);
    expect(read(`${text}ovs: {}\n`).policies).toBeDefined();
  });

  test("may stand in a file for bridges, and nothing of it is held against them", () => {
    const { dataPath, networks } = read(ofHns(", type: Overlay").replace("dataPath: hns", "dataPath: bridge"));
    expect([dataPath, networks[0]?.hns?.type]).toEqual(["bridge", "Overlay"]);
    expect(read(least).networks[0]).not.toHaveProperty("hns");
  });
});

test("an alias stands for what it names", () => {
  const parsed = parseAgentConfig(
    "networks:\n  - { name: pods, subnets: &s [10.1.0.0/24], bridge: &b br0 }\nsocket: &p /run/x\ndataDir: *p\n",
    "a",
  );
  expect(parsed.t === "ok" && parsed.config.dataDir).toBe("/run/x");
});

test("with a registry the first network's subnets may be left to it", () => {
  const parsed = parseAgentConfig(ofNodes("{ type: static, file: /n.yaml }"), "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join("\n"));
  const { networks, nodes } = parsed.config;
  expect(networks[0]?.subnets).toEqual([]);
  expect(nodes).toEqual({
    name: hostname().toLowerCase(),
    ...{ addresses: [], probeIntervalMs: 60_000 },
    registry: { type: "static", file: "/n.yaml" },
  });
});
