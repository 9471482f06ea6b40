import { describe, expect, test } from "vitest";
import { formatCidr, formatIp, ipOf, parseCidr } from "../../shared/net/ip.ts";
import type { BlockPeer } from "../../shared/policy/mod.ts";
import { addressesIn, apart, blocksIn, portsIn } from "./policy-ranges.ts";

function block(cidr: string, ...except: string[]): BlockPeer {
  const [own, ...holes] = [cidr, ...except].map(parseCidr);
  if (own === undefined || holes.includes(undefined)) throw new Error("not a block");
  return { t: "block", cidr: own, except: holes.filter((hole) => hole !== undefined) };
}

const texts = (family: 4 | 6, ...blocks: BlockPeer[]): readonly string[] =>
  addressesIn(blocks, family).map((range) =>
    [range.first, range.last].map((value) => formatIp(ipOf(family, value))).join("-"),
  );

describe("addresses in blocks", () => {
  test.each([
    ["one block", [block("10.0.0.0/30")], ["10.0.0.0-10.0.0.3"]],
    [
      "neither meet nor touch",
      [block("10.0.0.4/30"), block("10.0.0.0/30"), block("10.0.0.1/32")],
      ["10.0.0.0-10.0.0.7"],
    ],
    ["an exception within", [block("10.0.0.0/29", "10.0.0.2/31")], ["10.0.0.0-10.0.0.1", "10.0.0.4-10.0.0.7"]],
    ["exceptions at both ends", [block("10.0.0.0/30", "10.0.0.0/32", "10.0.0.3/32")], ["10.0.0.1-10.0.0.2"]],
    ["exceptions that meet", [block("10.0.0.0/29", "10.0.0.2/31", "10.0.0.0/30")], ["10.0.0.4-10.0.0.7"]],
    ["an exception of all", [block("10.0.0.0/30", "10.0.0.0/16")], []],
    ["an exception elsewhere", [block("10.0.0.0/30", "10.1.0.0/16")], ["10.0.0.0-10.0.0.3"]],
    [
      "what one block excepts and another has",
      [block("10.0.0.0/30", "10.0.0.1/32"), block("10.0.0.1/32")],
      ["10.0.0.0-10.0.0.3"],
    ],
    ["all there are", [block("0.0.0.0/0")], ["0.0.0.0-255.255.255.255"]],
    ["none of another family", [block("fd00::/64")], []],
  ])("%s", (_what, blocks, expected) => expect(texts(4, ...blocks)).toEqual(expected));

  test("of IPv6", () => {
    expect(texts(6, block("fd00::/126", "fd00::1/128"), block("10.0.0.0/8"))).toEqual([
      "fd00::-fd00::",
      "fd00::2-fd00::3",
    ]);
    expect(texts(6, block("::/0"))).toEqual(["::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]);
  });
});

test.each([
  ["10.0.0.0/30", ["10.0.0.0/30"]],
  ["10.0.0.1/32", ["10.0.0.1/32"]],
  ["0.0.0.0/0", ["0.0.0.0/0"]],
  ["255.255.255.255/32", ["255.255.255.255/32"]],
])("%s is one block again", (cidr, expected) => {
  const [range] = addressesIn([block(cidr)], 4);
  expect(range && blocksIn(range, 4).map(formatCidr)).toEqual(expected);
});

test("a block without one of its addresses is as many blocks as it has bits", () => {
  const left = addressesIn([block("10.0.0.0/29", "10.0.0.2/32")], 4).flatMap((range) => blocksIn(range, 4));
  expect(left.map(formatCidr)).toEqual(["10.0.0.0/31", "10.0.0.3/32", "10.0.0.4/30"]);
  const all = addressesIn([block("0.0.0.0/0", "10.0.0.2/32")], 4).flatMap((range) => blocksIn(range, 4));
  expect(all).toHaveLength(32);
  const six = addressesIn([block("::/0", "fd00::/128")], 6).flatMap((range) => blocksIn(range, 6));
  expect(six).toHaveLength(128);
});

test("ranges of any order and overlap are the same numbers, apart", () => {
  expect(
    apart([
      { first: 5n, last: 9n },
      { first: 1n, last: 2n },
      { first: 3n, last: 3n },
      { first: 6n, last: 7n },
      { first: 11n, last: 11n },
    ]),
  ).toEqual([
    { first: 1n, last: 3n },
    { first: 5n, last: 9n },
    { first: 11n, last: 11n },
  ]);
});

describe("ports of rules", () => {
  test.each([
    ["one", [{ protocol: "TCP", first: 80 }], ["6 80-80"]],
    ["all of a protocol", [{ protocol: "UDP" }], ["17 0-65535"]],
    ["all of a protocol, and one of it", [{ protocol: "UDP", first: 53 }, { protocol: "UDP" }], ["17 0-65535"]],
    [
      "ranges that meet, and the same of another protocol",
      [
        { protocol: "TCP", first: 80, last: 90 },
        { protocol: "TCP", first: 85, last: 95 },
        { protocol: "SCTP", first: 85 },
      ],
      ["6 80-95", "132 85-85"],
    ],
    ["none", [], []],
  ] as const)("%s", (_what, ports, expected) =>
    expect(portsIn(ports).map(({ protocol, first, last }) => `${protocol} ${first}-${last}`)).toEqual(expected),
  );
});
