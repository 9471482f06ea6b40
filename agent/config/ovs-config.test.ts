import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { parseAgentConfig } from "./parse-agent-config.ts";

const file = (ovs: string, more = ""): string =>
  `dataPath: ovs\nnetworks:\n  - { name: pods, subnets: [10.1.0.0/24], bridge: br-int }${more}\novs: ${ovs}\n`;

const read = (ovs: string) => {
  const parsed = parseAgentConfig(file(ovs), "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  return parsed.config.ovs;
};

const problemsOf = (ovs: string, more?: string): readonly string[] => {
  const parsed = parseAgentConfig(file(ovs, more), "agent.yaml");
  return parsed.t === "ok" ? [] : parsed.problems;
};

test("every key has a default", () => {
  expect(read("{}")).toEqual({
    database: "unix:/run/openvswitch/db.sock",
    management: "unix:/run/openvswitch/br-int.mgmt",
    datapath: "system",
    mode: "encap",
    tunnel: { type: "geneve", name: "pipette-tun0", checksum: false },
    gateway: "pipette-gw0",
    nodeAddresses: [],
    services: { cidrs: [parseCidr("10.96.0.0/16")] },
    multitenant: false,
    encryption: "none",
    ipsec: { esp: "kernel", forceUdp: false, charon: "/run/charon.enfy" },
    wireguard: { port: 51_820, device: "pipette-wg0" },
  });
});

test("is read whole", () => {
  const ovs = read(
    `{ database: "tcp:10.0.0.1:6640", management: "tcp:10.0.0.1:6653", datapath: netdev, mode: encap, tunnel: vxlan,
       tunnelPort: 8472, tunnelName: tun9, tunnelChecksum: true, gateway: gw9, uplink: eth1,
       nodeAddresses: [192.168.1.5, "fd00::5"], services: { file: /etc/s.json, cidrs: [10.97.0.0/16] },
       tenants: multitenant, clusterSubnets: [10.128.0.0/14] }`,
  );
  expect(ovs).toEqual({
    database: "tcp:10.0.0.1:6640",
    management: "tcp:10.0.0.1:6653",
    datapath: "netdev",
    mode: "encap",
    tunnel: { type: "vxlan", name: "tun9", checksum: true, port: 8472 },
    gateway: "gw9",
    uplink: "eth1",
    nodeAddresses: [parseIp("192.168.1.5"), parseIp("fd00::5")],
    services: { file: "/etc/s.json", cidrs: [parseCidr("10.97.0.0/16")] },
    multitenant: true,
    encryption: "none",
    ipsec: { esp: "kernel", forceUdp: false, charon: "/run/charon.enfy" },
    wireguard: { port: 51_820, device: "pipette-wg0" },
    clusterSubnets: [parseCidr("10.128.0.0/14")],
  });
});

test.each([
  ["unix:/var/run/ovs/db.sock", "unix:/var/run/ovs/br-int.mgmt"],
  ["/var/run/ovs/db.sock", "unix:/var/run/ovs/br-int.mgmt"],
])("the bridge listens beside the database %s", (database, management) => {
  expect(read(`{ database: "${database}" }`)?.management).toBe(management);
});

test.each([
  ["a database nowhere", "{ database: here }", '"ovs.database" is "here", wanted "unix:/PATH"'],
  ["a database that tells no place", '{ database: "tcp:1.2.3.4" }', '"ovs.database" is "tcp:1.2.3.4" without "manage'],
  [
    "a mode that there is not",
    "{ mode: encapsulate }",
    '"ovs.mode" is "encapsulate", wanted one of "encap", "noEncap"',
  ],
  ["a long name", "{ gateway: pipette-gatewa0 }", undefined],
  ["a longer name", "{ gateway: pipette-gateway00 }", '"ovs.gateway" is "pipette-gateway00", wanted an interface name'],
  ["one name for two", "{ gateway: br-int }", '"ovs.gateway" is "br-int" for the second time'],
  ["the other port's own name", "{ tunnelName: pipette-gw0 }", '"ovs.tunnelName" is "pipette-gw0" for the second time'],
  [
    "an address of nobody",
    "{ nodeAddresses: [127.0.0.1] }",
    '"ovs.nodeAddresses[0]" is "127.0.0.1", wanted an address that',
  ],
  ["two addresses of one family", "{ nodeAddresses: [10.0.0.1, 10.0.0.2] }", '"ovs.nodeAddresses[1]" is "10.0.0.2" of'],
  [
    "host bits",
    "{ services: { cidrs: [10.96.0.1/16] } }",
    '"ovs.services.cidrs[0]" is "10.96.0.1/16", wanted a network',
  ],
  ["another mode", "{ mode: hybrid }", undefined],
  [
    "projects kept apart where packets go without a tunnel",
    "{ mode: hybrid, tenants: multitenant }",
    '"ovs.tenants" is "multitenant" with mode "hybrid", wanted "encap"',
  ],
  [
    "policies that keep projects apart where there are none",
    "{ mode: noEncap, tenants: networkpolicy }",
    '"ovs.tenants" is "networkpolicy" without "policies", wanted that section',
  ],
  ["a relative path", "{ services: { file: s.json } }", '"ovs.services.file" is "s.json", wanted an absolute path'],
])("%s", (_name, ovs, problem) => {
  const problems = problemsOf(ovs);
  if (problem === undefined) expect(problems).toEqual([]);
  else expect(problems[0]).toContain(problem);
  expect(problems).toHaveLength(problem === undefined ? 0 : 1);
});

test("has policies that keep projects apart, in any mode", () => {
  for (const mode of ["encap", "networkPolicyOnly"])
    expect(problemsOf(`{ mode: ${mode}, tenants: networkpolicy }`, "\npolicies: {}")).toEqual([]);
});

test("has one network", () => {
  const second = "\n  - { name: more, subnets: [10.2.0.0/24], bridge: br1 }";
  expect(problemsOf("{}", second)[0]).toContain('"networks[1]" is a second network, wanted one alone');
});
