import { expect, test, vi } from "vitest";
import { parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { Kernel, NodeInMemory, present } from "../../../test/fakes/netlink/kernel.ts";
import { installPacketRules, missingPacketRules, packetRules, packetTable, removePacketRules } from "./packet-rules.ts";

const network = {
  name: "pods",
  subnets: [parseCidr("10.1.2.0/24")!, parseCidr("fd00:1::/64")!],
  bridge: "br-pods",
  hairpin: true,
  masquerade: true,
};

const guards = `  chain unforwarded {
    iifname "br-pods" ip6 daddr fe80::/10 drop;
    iifname "br-pods" ip6 daddr ::/128 drop;
  }
  chain loopback {
    iifname "br-pods" ip saddr 127.0.0.0/8 drop;
    iifname "br-pods" ip daddr 127.0.0.0/8 drop;
    iifname "br-pods" ip6 saddr ::1/128 drop;
    iifname "br-pods" ip6 daddr ::1/128 drop;
  }
`;

const emptied = (name: string, hook: string): string =>
  `add chain inet pipette-br-pods ${name} { ${hook}; policy accept; }\nflush chain inet pipette-br-pods ${name}\n`;
const gone = (name: string): string =>
  ["add", "flush", "delete"].map((verb) => `${verb} chain inet pipette-br-pods ${name}\n`).join("");
const guardsEmptied =
  emptied("unforwarded", "type filter hook forward priority filter") +
  emptied("loopback", "type filter hook prerouting priority raw") +
  ["tunnel-input", "tunnel-forward", "tunnel-output"].map(gone).join("") +
  ["node-ports", "node-ports-output", "node-ports-source", "refused-forward", "refused-output"].map(gone).join("");

test("replaces the chains of its bridge in one go, with one rule per subnet", () => {
  expect(packetRules(network)).toBe(`table inet pipette-br-pods
${emptied("postrouting", "type nat hook postrouting priority srcnat")}${gone("projects")}${emptied(
  "unhidden",
  "type filter hook postrouting priority srcnat + 10",
)}${guardsEmptied}table inet pipette-br-pods {
  chain postrouting {
    ip saddr 10.1.2.0/24 ip daddr != { 10.1.2.0/24, 224.0.0.0/4 } oifname != "br-pods" masquerade;
    ip6 saddr fd00:1::/64 ip6 daddr != { fd00:1::/64, ff00::/8 } oifname != "br-pods" masquerade;
  }
  chain unhidden {
    ct direction reply accept;
    ip saddr 10.1.2.0/24 ip daddr != { 10.1.2.0/24, 224.0.0.0/4 } oifname != "br-pods" drop;
    ip6 saddr fd00:1::/64 ip6 daddr != { fd00:1::/64, ff00::/8 } oifname != "br-pods" drop;
  }
${guards}}
`);
});

test("guards the node also where nothing is to be masqueraded", () => {
  expect(packetRules({ ...network, masquerade: false })).toBe(
    `table inet pipette-br-pods\n${["postrouting", "projects", "unhidden"].map(gone).join("")}${guardsEmptied}table inet pipette-br-pods {\n${guards}}\n`,
  );
});

test.each([
  [{ protocol: "udp", port: 6081 }, "udp dport 6081"],
  [{ protocol: "tcp", port: 7471 }, "tcp dport 7471"],
  [{ protocol: "gre" }, "meta l4proto gre"],
] as const)("drops what looks like the tunnel's on every way out of the node's kernel: %o", (tunnel, words) => {
  const rules = packetRules({ ...network, tunnel });
  for (const [name, hook] of [
    ["tunnel-input", "input"],
    ["tunnel-forward", "forward"],
    ["tunnel-output", "postrouting"],
  ] as const) {
    expect(rules).toContain(emptied(name, `type filter hook ${hook} priority filter`));
    expect(rules).toContain(`  chain ${name} {\n    iifname "br-pods" ${words} drop;\n`);
  }
});

test("keeps packets to exempt blocks as they are, each block once, since nftables takes none inside another", () => {
  const exempt = ["10.1.0.0/16", "10.1.2.0/24", "10.1.0.0/16", "fd00::/8", "192.168.1.5/32"].map(
    (text) => parseCidr(text)!,
  );
  const rules = packetRules({ ...network, exempt });
  expect(rules).toContain("ip daddr != { 10.1.0.0/16, 192.168.1.5/32, 224.0.0.0/4 }");
  expect(rules).toContain("ip6 daddr != { fd00::/8, ff00::/8 }");
  expect(packetRules({ ...network, exempt: [parseCidr("0.0.0.0/0")!] })).toContain("ip daddr != { 0.0.0.0/0 }");
});

test("hides what means nothing elsewhere in any case", () => {
  const nodeLocal = [parseIp("169.254.0.253")!, parseIp("fc01::aabb:ccdd:eeff")!];
  const rules = packetRules({ ...network, masquerade: false, exempt: [parseCidr("0.0.0.0/0")!], nodeLocal });
  expect(rules).toContain('    ip saddr 169.254.0.253 oifname != "br-pods" masquerade;');
  expect(rules).toContain('    ip6 saddr fc01::aabb:ccdd:eeff oifname != "br-pods" masquerade;');
  expect(rules).not.toContain("10.1.2.0/24");
});

test("gives to a switch what is for node ports, and refuses what nobody is to answer", () => {
  const services = {
    bridge: "br-pods",
    virtual: { 4: parseIp("169.254.0.252")!, 6: parseIp("fc01::aabb:ccdd:eefe")! },
    nextHop: { 4: parseIp("169.254.0.253")!, 6: parseIp("fc01::aabb:ccdd:eeff")! },
    nodePortAddresses: [],
  };
  const rules = packetRules({ ...network, services });
  expect(rules).toContain("  set node-ports4 { type inet_proto . inet_service; }\n");
  expect(rules).toContain("  set refused6 { type ipv6_addr . inet_proto . inet_service; }\n");
  for (const chain of ["node-ports", "node-ports-output"])
    expect(rules).toContain(
      `  chain ${chain} {\n    ip daddr != 127.0.0.0/8 fib daddr type local meta l4proto . th dport @node-ports4 dnat ip to 169.254.0.252;\n`,
    );
  expect(rules).toContain('    oifname "br-pods" ip daddr 169.254.0.252 fib saddr type local masquerade;\n');
  expect(rules).toContain(
    "    ip6 daddr . meta l4proto . th dport @refused6 reject with icmpx type port-unreachable;\n",
  );
  expect(rules).toContain(
    '    iifname "br-pods" ip daddr != 169.254.0.252 rt ip nexthop 169.254.0.253 meta l4proto tcp reject with tcp reset;\n',
  );
  const some = packetRules({ ...network, services: { ...services, nodePortAddresses: [parseCidr("192.0.2.0/24")!] } });
  expect(some).toContain("ip daddr != 127.0.0.0/8 ip daddr { 192.0.2.0/24 } fib daddr type local meta");
  expect(some).not.toContain("@node-ports6");
});

test("without nft pods that need no masquerade have their network, and the node says what is open", async () => {
  vi.stubEnv("PATH", "/nonexistent");
  try {
    const open = await installPacketRules([{ ...network, masquerade: false }]);
    expect(open).toMatch(/no packet rules, as "nft" is not installed/);
    await expect(installPacketRules([network])).rejects.toThrow(/"nft" is not installed, wanted nftables/);
    const apart = { ...network, masquerade: false, multitenant: true };
    await expect(installPacketRules([apart])).rejects.toThrow(/"nft" is not installed, wanted nftables/);
    await removePacketRules([network]);
  } finally {
    vi.unstubAllEnvs();
  }
});

test("lets nobody hide a pod from another where projects are kept apart, but from itself", () => {
  const exempt = [parseCidr("10.1.0.0/16")!, parseCidr("10.1.2.0/24")!];
  const rules = packetRules({ ...network, masquerade: false, exempt, multitenant: true });
  expect(rules).toContain(emptied("projects", "type nat hook postrouting priority srcnat - 10"));
  expect(rules).toContain(
    [
      '    oifname "br-pods" ip saddr { 10.1.0.0/16 } add @itself4 { ip saddr . ip saddr };',
      '    oifname "br-pods" ip saddr { 10.1.0.0/16 } ip saddr . ip daddr @itself4 accept;',
      '    oifname "br-pods" snat ip prefix to ip saddr map { 10.1.0.0/16 : 10.1.0.0/16 };',
      '    oifname "br-pods" ip6 saddr { fd00:1::/64 } add @itself6 { ip6 saddr . ip6 saddr };',
      '    oifname "br-pods" ip6 saddr { fd00:1::/64 } ip6 saddr . ip6 daddr @itself6 accept;',
      '    oifname "br-pods" snat ip6 prefix to ip6 saddr map { fd00:1::/64 : fd00:1::/64 };',
    ].join("\n"),
  );
});

test("rules that somebody has deleted are counted, table by table", async () => {
  present.node = new NodeInMemory();
  const other = { ...network, bridge: "br-other", masquerade: false };
  const missing = (...networks: Parameters<typeof missingPacketRules>[1]) =>
    missingPacketRules(new Kernel() as never, networks);
  for (const each of [network, other]) present.node.nft(packetRules(each));
  expect([await missing(network, other), await missing()]).toEqual([[], []]);
  const { chains } = present.node.filter.tables.get(`inet ${packetTable(network)}`)!;
  chains.get("loopback")?.rules.pop();
  chains.delete("postrouting");
  present.node.filter.tables.delete(`inet ${packetTable(other)}`);
  expect(await missing(network, other)).toEqual([
    '8 of 11 packet rules stand in the table "pipette-br-pods"',
    '0 of 6 packet rules stand in the table "pipette-br-other"',
  ]);
});
