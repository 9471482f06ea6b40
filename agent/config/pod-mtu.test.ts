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

test.each([
  [v4, 1440],
  [v6, 1420],
  [[...v4, ...v6], 1440],
] as const)("WireGuard takes the tunnel's place: between %o it leaves %i", (nodes, expected) => {
  expect(podMtu(1500, "encap", "geneve", nodes, "wireguard")).toBe(expected);
});
