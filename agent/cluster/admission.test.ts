import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { parseAgentConfig } from "../config/parse-agent-config.ts";
import { admission, admissionPolicyOf } from "./admission.ts";
import { nodeOfText } from "./node-text.ts";

const links = ["172.30.0.1/24", "fd30:a::1/64"].map((text) => parseCidr(text)!);
const servers = ["172.31.7.7", "fd31::7"].map((text) => parseIp(text)!);
const registries = {
  etcd: "type: etcd, endpoints: [http://e:2379], networks: [{ cidr: 10.0.0.0/8, hostBits: 8 }, { cidr: fd10::/48, hostBits: 64 }]",
  file: "type: static, file: /f",
};

/** Why a record is refused, by a node with 10.10.1.0/24 (and fd10:0:0:1::/64). */
function wrong(
  registry: keyof typeof registries,
  more: { ovs?: string; services?: string; section?: string; own?: string[]; address?: string },
  ...subnets: string[]
) {
  const {
    ovs = "",
    section = "",
    services = 'cidrs: [10.97.0.0/16, "fd96::/112"]',
    own = ["10.10.1.0/24", "fd10:0:0:1::/64"],
    address = "172.30.0.9",
  } = more;
  const text = `dataPath: ovs
networks: [{ name: pods, bridge: br-int }]
ovs: { services: { ${services} }${ovs} }
nodes: { name: n, registry: { ${registries[registry]} } }
${section}
`;
  const parsed = parseAgentConfig(text, "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join("\n"));
  const self = nodeOfText({ name: "n", addresses: ["172.30.0.1"], subnets: own });
  const around = admissionPolicyOf(parsed.config, self, links, servers);
  return admission(around)(nodeOfText({ name: "x", addresses: [address], subnets }));
}

test.each([
  ...["0.0.0.0/0", "0.0.0.0/8", "0.1.0.0/16", "127.0.0.0/8", "127.1.2.0/24", "169.254.0.0/16", "169.254.169.252/30"],
  ...[
    "224.0.0.0/4",
    "239.1.1.0/24",
    "240.0.0.0/4",
    "255.255.255.0/24",
    "255.255.255.255/32",
    "128.0.0.0/1",
    "64.0.0.0/2",
  ],
  ...[
    "::/0",
    "::/96",
    "::/128",
    "64:ff9b::/96",
    "fe80::/64",
    "fe00::/8",
    "ff02::/16",
    "8000::/1",
    "fc01::aabb:ccdd:ee00/120",
  ],
])("%s is nobody's pods', whatever else is known", (subnet) => {
  for (const registry of ["etcd", "file"] as const)
    expect(wrong(registry, {}, subnet)).toContain(`"${subnet}" touches`);
});

test.each([
  ["10.97.3.0/24", '"10.97.0.0/16", where services have their addresses'],
  ["10.64.0.0/10", '"10.97.0.0/16", where services have their addresses'],
  ["fd96::/64", '"fd96::/112", where services have their addresses'],
  ["172.31.7.0/24", '"172.31.7.7/32", where the registry is kept'],
  ["fd31::/64", '"fd31::7/128", where the registry is kept'],
  ["172.30.0.128/25", '"172.30.0.0/24", the network that this node\'s own interface is in'],
  ["172.16.0.0/12", '"172.31.7.7/32", where the registry is kept'],
  ["fd30:a::/64", '"fd30:a::/64", the network that this node\'s own interface is in'],
])("%s is somebody else's: %s", (subnet, what) => {
  for (const registry of ["etcd", "file"] as const) expect(wrong(registry, {}, subnet)).toContain(`touches ${what}`);
});

test("where the registry leases subnets, each is one that it leases", () => {
  expect(wrong("etcd", {}, "10.20.3.0/24", "fd10:0:0:7::/64")).toBeUndefined();
  expect(wrong("etcd", {}, "198.51.100.0/30")).toContain("is outside of the cluster's networks, 10.0.0.0/8");
  expect(wrong("etcd", {}, "2001:db8::/64")).toContain("is outside of the cluster's networks, fd10::/48");
  for (const other of ["10.20.3.0/28", "10.20.0.0/16", "fd10:0:0:7::/80"])
    expect(wrong("etcd", {}, other)).toContain("is no node's part of");
});

test("the default block of services stands in the way of no pods where there are no services", () => {
  const networks = ", clusterSubnets: [10.0.0.0/8]";
  expect(wrong("file", { ovs: networks, services: "" }, "10.96.3.0/24")).toBeUndefined();
  expect(wrong("file", { services: "" }, "10.96.3.0/24")).toContain("where services have");
  expect(wrong("file", { ovs: networks, services: "file: /s" }, "10.96.3.0/24")).toContain("where services have");
  const section = (text: string, subnet: string) =>
    wrong("file", { ovs: networks, services: "", section: `services: { ${text} }` }, subnet);
  expect(section("", "10.96.3.0/24")).toContain("where services have");
  expect(section("cidrs: [10.98.0.0/16]", "10.98.3.0/24")).toContain("where services have");
  expect(section("cidrs: [10.98.0.0/16]", "10.96.3.0/24")).toBeUndefined();
});

test("where nobody says what the cluster's networks are, a subnet is one of a size for one node", () => {
  for (const subnet of ["198.51.100.0/30", "10.16.0.0/12", "203.0.113.0/24", "2001:db8::/48"])
    expect(wrong("file", {}, subnet)).toBeUndefined();
  for (const subnet of ["11.0.0.0/8", "16.0.0.0/4", "2000::/3", "fd00::/16"])
    expect(wrong("file", {}, subnet)).toMatch(/is too large for one node|touches/);
  for (const subnet of ["10.20.3.4/32", "10.20.3.4/31"])
    expect(wrong("file", {}, subnet)).toContain("is no network for pods");
});

test("clusterSubnets count for a family where this node's own pods are in them, and else say something else", () => {
  const ovs = ", clusterSubnets: [10.10.0.0/16]";
  expect(wrong("file", { ovs }, "10.10.7.0/24", "fd77::/64")).toBeUndefined();
  expect(wrong("file", { ovs }, "10.20.7.0/24")).toContain("is outside of the cluster's networks, 10.10.0.0/16");
  expect(wrong("file", { ovs: ", clusterSubnets: [192.168.0.0/16]" }, "10.20.7.0/24")).toBeUndefined();
  // With encryption nobody else is let in: what goes there would leave in clear.
  const closed = ", encryption: wireguard, clusterSubnets: [10.10.0.0/16]";
  expect(wrong("file", { ovs: closed }, "10.10.7.0/24", "fd77::/64")).toContain("outside of");
  expect(wrong("file", { ovs: closed }, "10.10.7.0/24")).toBeUndefined();
  // Those of the registry are what it leases: clusterSubnets may be wider.
  expect(wrong("etcd", { ovs: ", clusterSubnets: [0.0.0.0/1]" }, "11.0.0.0/24")).toContain("outside of");
});

test("pods within the link's network are refused to nobody where this node's own are there too", () => {
  expect(wrong("file", { own: ["172.30.0.64/28"] }, "172.30.0.80/28")).toBeUndefined();
});

test.each([
  ["172.30.0.0", 'is of no host in "172.30.0.0/24"'],
  ["172.30.0.255", 'is of no host in "172.30.0.0/24"'],
  ["127.0.0.1", "is no node's"],
  ["224.0.0.1", "is no node's"],
])("the address %s %s", (address, is) => {
  expect(wrong("etcd", { address }, "10.20.3.0/24")).toContain(is);
  expect(wrong("etcd", { address: "172.30.0.254" }, "10.20.3.0/24")).toBeUndefined();
  // A member of etcd may be a node.
  expect(wrong("etcd", { address: "172.31.7.7" }, "10.20.3.0/24")).toBeUndefined();
});
