import { describe, expect, test } from "vitest";
import { formatCidr, parseCidr } from "../../../shared/net/ip.ts";
import { random } from "../../../test/support/random.ts";
import type { ClusterNetwork } from "../../config/nodes-config.ts";
import { familiesOf, freeNumber, SubnetPool } from "./cluster-networks.ts";

const network = (cidr: string, hostBits: number): ClusterNetwork => ({ cidr: parseCidr(cidr)!, hostBits });
const first = (count: number, pool: SubnetPool): readonly string[] =>
  Array.from({ length: count }, (_, i) => formatCidr(pool.at(i)));

describe("the subnets of a network", () => {
  test.each([
    // The example of OpenShift's own description: slots of /24 first.
    ["10.1.0.0/16", 6, { 0: "10.1.0.0/26", 1: "10.1.1.0/26", 255: "10.1.255.0/26", 256: "10.1.0.64/26" }],
    ["10.128.0.0/14", 9, { 0: "10.128.0.0/23", 1: "10.129.0.0/23", 3: "10.131.0.0/23", 4: "10.128.2.0/23" }],
    ["10.128.0.0/14", 8, { 0: "10.128.0.0/24", 1: "10.128.1.0/24", 1023: "10.131.255.0/24" }],
    ["10.1.0.0/16", 10, { 0: "10.1.0.0/22", 1: "10.1.4.0/22", 63: "10.1.252.0/22" }],
    ["10.1.2.0/24", 8, { 0: "10.1.2.0/24" }],
    ["fd00::/48", 64, { 0: "fd00:0:0:1::/64", 65534: "fd00:0:0:ffff::/64" }],
    ["fd00::/40", 64, { 65534: "fd00:0:0:ffff::/64", 65535: "fd00:0:1:1::/64" }],
    ["fd00::/56", 64, { 0: "fd00::/64", 255: "fd00:0:0:ff::/64" }],
  ])("%s with %i host bits come in OpenShift's order", (cidr, hostBits, wanted) => {
    const pool = new SubnetPool(network(cidr, hostBits));
    for (const [order, subnet] of Object.entries(wanted)) expect(formatCidr(pool.at(Number(order)))).toBe(subnet);
  });

  test("are all there, each once, in the order of their bits after the first whole octet", () => {
    const pick = random(7);
    for (let round = 0; round < 150; round++) {
      const prefix = 8 + pick(20);
      const hostBits = 2 + pick(32 - prefix - 1);
      const bits = 32 - prefix - hostBits;
      if (bits > 11) continue;
      const base = Number(BigInt.asUintN(32, BigInt(pick(2 ** 31)) << 1n) >> BigInt(32 - prefix)) * 2 ** (32 - prefix);
      const cidr = { ip: { family: 4, value: BigInt(base) }, prefix } as const;
      const pool = new SubnetPool({ cidr, hostBits });
      expect(first(pool.count, pool)).toEqual(byHand(base, bits, hostBits));
    }
  });

  test.each([
    ["10.0.0.1/16", 8, "it has host bits, wanted its first address"],
    ["10.0.0.0/24", 9, "it is smaller than one subnet, wanted 8 host bits at most"],
    ["10.0.0.0/24", 1, "a subnet would have no room, wanted 2 host bits or more"],
  ])("%s with %i host bits is refused", (cidr, hostBits, reason) => {
    expect(() => new SubnetPool(network(cidr, hostBits))).toThrow(reason);
  });
});

/**
 * The order as its reason says it: numbers count first through the bits of the subnet that lie in whole octets, and then
 * through those that share an octet with the host. Written by sorting, not by turning bits.
 */
function byHand(base: number, bits: number, hostBits: number): readonly string[] {
  const shared = hostBits % 8 === 0 ? 0 : 8 - (hostBits % 8);
  const low = bits > shared ? shared : 0;
  return Array.from({ length: 2 ** bits }, (_, index) => ({
    index,
    high: Math.floor(index / 2 ** low),
    low: index % 2 ** low,
  }))
    .sort((a, b) => a.low - b.low || a.high - b.high)
    .map(({ index }) => {
      const value = base + index * 2 ** hostBits;
      const octets = [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256);
      return `${octets.join(".")}/${32 - hostBits}`;
    });
}

describe("the networks of a family", () => {
  test("are filled in their order, and none is given twice", () => {
    const [family] = familiesOf([network("10.1.0.0/24", 6), network("10.2.0.0/24", 6)]);
    const taken = new Set<string>();
    const given: string[] = [];
    for (let ticket = 0; ticket < 8; ticket++) {
      const subnet = formatCidr(family!.free(taken, ticket)!);
      taken.add(subnet);
      given.push(subnet);
    }
    expect(new Set(given).size).toBe(8);
    expect(given.slice(0, 4).every((subnet) => subnet.startsWith("10.1."))).toBe(true);
    expect(family!.free(taken, 8)).toBeUndefined();
    taken.delete("10.1.0.128/26");
    expect(formatCidr(family!.free(taken, 9)!)).toBe("10.1.0.128/26");
    expect(family!.first(3)).toBeDefined();
    expect(family!.first(4)).toBeUndefined();
  });

  test("overlap nowhere, and there is one", () => {
    expect(() => familiesOf([network("10.0.0.0/8", 8), network("10.5.0.0/16", 8)])).toThrow("overlap");
    expect(() => familiesOf([])).toThrow("there is none");
    expect(familiesOf([network("10.0.0.0/16", 8), network("fd00::/48", 64), network("10.1.0.0/16", 8)])).toHaveLength(
      2,
    );
  });

  test("a free number is found where there is one left", () => {
    expect(freeNumber(1000, (number) => number === 777)).toBe(777);
    expect(freeNumber(1000, () => false)).toBeUndefined();
    const found = new Set(Array.from({ length: 50 }, () => freeNumber(1_000_000, () => true)));
    expect(found.size).toBeGreaterThan(40);
  });
});
