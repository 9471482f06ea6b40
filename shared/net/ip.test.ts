import IPCIDR from "ip-cidr";
import { describe, expect, test } from "vitest";
import { contains, firstOf, formatCidr, formatIp, ipOf, lastOf, parseCidr, parseIp } from "./ip.ts";

test("one behind the last IPv4 address lies in no block, also not in the one of all", () => {
  for (const block of ["0.0.0.0/0", "0.0.0.0/8", "10.0.0.0/8"])
    for (const value of [1n << 32n, (1n << 32n) + 0x0a00_0001n])
      expect(contains(parseCidr(block)!, ipOf(4, value)), block).toBe(false);
});

describe("parseIp", () => {
  test.each([
    ["0.0.0.0", 0n],
    ["10.1.2.3", 0x0a010203n],
    ["255.255.255.255", 0xffffffffn],
    ["::", 0n],
    ["::1", 1n],
    ["fd00::2", 0xfd000000000000000000000000000002n],
    ["1:2:3:4:5:6:7:8", 0x00010002000300040005000600070008n],
    ["64:ff9b::192.0.2.33", 0x0064ff9b0000000000000000c0000221n],
    ["::ffff:10.0.0.1", 0x0a000001n],
  ])("reads %s", (text, value) => {
    expect(parseIp(text)?.value).toBe(value);
  });

  test.each([
    "",
    "10.0.0",
    "10.0.0.256",
    "10.0.0.01",
    "10.0.0.1 ",
    "+1.0.0.1",
    "1e1.0.0.1",
    ":",
    ":::",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1::2::3",
    "12345::",
    "g::",
    "fe80::1%eth0",
    "1.2.3.4::",
    "1:2:3:4:5:6:7::8",
    "::1.2.3",
  ])("refuses %j", (text) => {
    expect(parseIp(text)).toBeUndefined();
  });
});

describe("formatIp", () => {
  test.each([
    ["2001:DB8:0:0:1:0:0:1", "2001:db8::1:0:0:1"],
    ["0:0:0:0:0:0:0:0", "::"],
    ["1:0:0:2:0:0:0:3", "1:0:0:2::3"],
    ["1:2:3:4:5:6:7:0", "1:2:3:4:5:6:7:0"],
    ["fd00:0:0:0:0:0:0:0", "fd00::"],
  ])("writes %s as %s (RFC 5952)", (text, canonical) => {
    expect(formatIp(parseIp(text)!)).toBe(canonical);
  });
});

describe("parseCidr", () => {
  test.each([
    "10.0.0.0",
    "10.0.0.0/",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/08",
    "fd00::/129",
    "::ffff:10.0.0.0/104",
    "::ffff:10.0.0.0/24",
    "::ffff:a00:1/32",
    "/24",
    "10.0.0.0/1 ",
  ])("refuses %j", (text) => {
    expect(parseCidr(text)).toBeUndefined();
  });

  test("keeps host bits", () => {
    expect(formatCidr(parseCidr("10.1.2.3/24")!)).toBe("10.1.2.3/24");
  });
});

describe("against ip-cidr", () => {
  // A fixed multiplicative sequence: the same 400 blocks in every run.
  let seed = 20261121n;
  const next = (): bigint => (seed = (seed * 6364136223846793005n + 1442695040888963407n) & ((1n << 64n) - 1n));
  const blocks = Array.from({ length: 400 }, (_, i) => {
    const family = i % 2 === 0 ? 4 : 6;
    const value = family === 4 ? next() >> 32n : (next() << 64n) | next();
    const prefix = Number((next() >> 8n) % (family === 4 ? 33n : 129n));
    return formatCidr({ ip: ipOf(family, value), prefix });
  }).filter((block) => !block.startsWith("::ffff:"));

  test("first and last address of a block agree", () => {
    for (const block of blocks) {
      const cidr = parseCidr(block)!;
      const oracle = new IPCIDR(block);
      expect(formatIp(firstOf(cidr)), block).toBe(formatIp(parseIp(oracle.start())!));
      expect(formatIp(lastOf(cidr)), block).toBe(formatIp(parseIp(oracle.end())!));
    }
  });

  test("membership agrees", () => {
    for (const [i, block] of blocks.entries()) {
      const other = parseCidr(blocks[(i + 2) % blocks.length]!)!;
      expect(contains(parseCidr(block)!, other.ip), block).toBe(new IPCIDR(block).contains(formatIp(other.ip)));
    }
  });
});
