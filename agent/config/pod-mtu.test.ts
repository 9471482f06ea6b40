import { expect, test } from "vitest";
import { parseCidr } from "../../shared/net/ip.ts";
import { podMtu } from "./pod-mtu.ts";

const v4 = [parseCidr("192.168.1.5/24")!];
const v6 = [parseCidr("fd00::5/64")!];

test.each([
  ["encap", "geneve", v4, 1450],
  ["encap", "vxlan", v4, 1450],
  ["encap", "gre", v4, 1458],
  ["encap", "geneve", v6, 1430],
  ["encap", "geneve", [...v4, ...v6], 1450],
  ["hybrid", "vxlan", v4, 1450],
  ["noEncap", "geneve", v4, 1500],
  ["networkPolicyOnly", "geneve", v6, 1500],
] as const)("%s with %s between %o leaves pods %i of 1500 bytes", (mode, tunnel, nodes, expected) => {
  expect(podMtu(1500, mode, tunnel, nodes)).toBe(expected);
});

const ipsec = { esp: "kernel", forceUdp: false } as const;

test.each([
  [v4, 1440],
  [v6, 1420],
  [[...v4, ...v6], 1440],
] as const)("WireGuard takes the tunnel's place: between %o it leaves %i", (nodes, expected) => {
  expect(podMtu(1500, "encap", "geneve", nodes, { encryption: "wireguard", ipsec })).toBe(expected);
});

test.each([
  // 1448 behind IP, of which 32 are ESP's headers and check value, 2 its trailer: 1446 are left, Geneve's 30 among them.
  [1500, "geneve", v4, false, 1416],
  [1500, "vxlan", v4, false, 1416],
  [1500, "gre", v4, false, 1424],
  [1500, "geneve", v4, true, 1408],
  [1500, "geneve", v6, false, 1396],
  [1500, "geneve", v6, true, 1388],
  [1501, "geneve", v4, false, 1416],
  [1503, "geneve", v4, false, 1416],
  [1504, "geneve", v4, false, 1420],
  [9000, "gre", v4, false, 8924],
] as const)(
  "IPsec of the kernel: of %i %s between %o (in UDP: %j) leaves %i",
  (transport, tunnel, nodes, forceUdp, left) => {
    const by = { encryption: "ipsec", ipsec: { esp: "kernel", forceUdp } } as const;
    expect(podMtu(transport, "encap", tunnel, nodes, by)).toBe(left);
  },
);

test.each([
  [1500, "geneve", v4, 1350],
  [1500, "vxlan", v4, 1350],
  [1500, "gre", v4, 1358],
  [1500, "geneve", v6, 1330],
  // Where the link is the narrower one: ESP in UDP has room for 1338 behind two headers.
  [1400, "geneve", v4, 1288],
] as const)("IPsec in user space: of %i %s between %o leaves %i", (transport, tunnel, nodes, left) => {
  const by = { encryption: "ipsec", ipsec: { esp: "userspace", forceUdp: false } } as const;
  expect(podMtu(transport, "encap", tunnel, nodes, by)).toBe(left);
});
