import { expect, test } from "vitest";
import { createLogger } from "../../shared/log.ts";
import { firstOf, formatCidr, ipOf, overlap } from "../../shared/net/ip.ts";
import { random } from "../../test/support/random.ts";
import { admission } from "./admission.ts";
import type { ClusterNode } from "./node-registry.ts";
import { nodeOfText } from "./node-text.ts";
import { peersOf, RefusalLog } from "./peers.ts";

const node = (name: string, address: string, ...subnets: string[]): ClusterNode =>
  nodeOfText({ name, addresses: address === "" ? [] : [address], subnets });
const self = node("m", "192.0.2.100", "10.1.0.0/24", "fd00:1::/64");
const wrongOf = admission({ networks: {}, occupied: [], links: [] });
const mapOf = (nodes: readonly ClusterNode[]) => new Map(nodes.map((each) => [each.name, each]));

function peers(others: readonly ClusterNode[], before: readonly ClusterNode[] = []) {
  const { peers: found, refused } = peersOf(self, mapOf([self, ...others]), mapOf(before), wrongOf);
  return { names: [...found.keys()], refused };
}

test("the others are peers, in their order, as soon as they have an address and a subnet", () => {
  const found = peers([
    node("z", "192.0.2.3", "10.3.0.0/24"),
    node("a", "192.0.2.1", "10.2.0.0/24", "fd00:2::/64"),
    node("early", "192.0.2.4"),
    node("nowhere", "", "10.4.0.0/24"),
  ]);
  expect(found).toEqual({ names: ["z", "a"], refused: [] });
});

test.each([
  ["a subnet around ours", ["192.0.2.1", "10.0.0.0/12"], 'has "10.0.0.0/12", which overlaps with "10.1.0.0/24" of "m"'],
  ["a part of ours", ["192.0.2.1", "10.1.0.128/25"], 'has "10.1.0.128/25", which overlaps with "10.1.0.0/24" of "m"'],
  ["our address", ["192.0.2.100", "10.2.0.0/24"], 'has "192.0.2.100", the address of "m"'],
  [
    "a subnet with our address",
    ["192.0.3.1", "192.0.2.96/28"],
    '"192.0.2.96/28", in which "192.0.2.100", the address of "m", is',
  ],
  ["an address of our pods", ["10.1.0.7", "10.2.0.0/24"], 'has "10.1.0.7" in "10.1.0.0/24" of "m"'],
  ["its own address among its pods", ["10.2.0.1", "10.2.0.0/24"], '"10.2.0.1" of "a" itself in its own subnet'],
] as const)("nobody takes %s", (_name, [address, subnet], is) => {
  const found = peers([node("a", address, subnet), node("b", "192.0.2.2", "10.9.0.0/24")]);
  expect(found.names).toEqual(["b"]);
  expect(found.refused).toEqual([expect.stringMatching(/^node "a" is left out: it has /)]);
  expect(found.refused[0]).toContain(is);
});

const victim = node("victim", "192.0.2.1", "10.2.0.0/24", "fd00:2::/64");

test.each([
  ["a part of its subnet", node("a", "192.0.2.9", "10.2.0.0/28")],
  ["its subnet", node("a", "192.0.2.9", "10.2.0.0/24")],
  ["a subnet around it", node("a", "192.0.2.9", "10.2.0.0/16")],
  ["a part of its other subnet", node("a", "192.0.2.9", "fd00:2::/80")],
  ["its address", node("a", "192.0.2.1", "10.7.0.0/24")],
  ["a subnet with its address in it", node("a", "192.0.2.9", "192.0.2.0/30")],
  ["an address out of its subnet", node("a", "10.2.0.9", "10.7.0.0/24")],
])("who was known before stays a peer, whoever claims %s later and comes first in the registry", (_name, liar) => {
  const found = peers([liar, victim], [victim]);
  expect(found.names).toEqual(["victim"]);
  expect(found.refused).toEqual([expect.stringMatching(/^node "a" is left out: it has .*"victim"/)]);
  // Also where the liar was a peer himself until he changed his record.
  expect(peers([liar, victim], [node("a", "192.0.2.9", "10.8.0.0/24"), victim]).names).toEqual(["victim"]);
});

test.each([
  ["a part of its subnet", node("a", "192.0.2.9", "10.2.0.0/28")],
  ["its subnet", node("a", "192.0.2.9", "10.2.0.0/24")],
])("a peer that moves keeps its subnets, though somebody has claimed %s meanwhile", (_name, liar) => {
  const found = peers([liar, { ...victim, addresses: node("x", "192.0.2.77").addresses }], [victim]);
  expect(found.names).toEqual(["victim"]);
});

test("a public key stays with who had it, whoever writes it as its own", () => {
  const [key, next] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64")) as [string, string];
  const keyed = (each: ClusterNode, own: string): ClusterNode => ({
    ...each,
    encryption: { type: "wireguard", key: own },
  });
  const liar = keyed(node("a", "192.0.2.9", "10.7.0.0/24"), key);
  const found = peers([liar, keyed(victim, key)], [keyed(victim, key)]);
  expect(found).toEqual({
    names: ["victim"],
    refused: ['node "a" is left out: it has the public key of "victim"'],
  });
  // A key that its node has given up is nobody's, and of two that nobody knew before the registry's first has it.
  expect(peers([liar, keyed(victim, next)], [keyed(victim, key)]).names).toEqual(["a", "victim"]);
  expect(peers([keyed(victim, key), liar]).names).toEqual(["victim"]);
});

test("an address that a peer has given up is another's to have; one that moves onto another's is left out", () => {
  const moved = { ...victim, addresses: node("x", "192.0.2.77").addresses };
  expect(peers([node("a", "192.0.2.1", "10.7.0.0/24"), moved], [victim]).names).toEqual(["a", "victim"]);
  const other = node("z", "192.0.2.77", "10.7.0.0/24");
  const found = peers([moved, other, node("thief", "192.0.2.5", "10.2.0.0/24")], [victim, other]);
  expect(found.names).toEqual(["z"]);
  expect(found.refused[0]).toContain('node "victim" is left out: it has "192.0.2.77", the address of "z"');
});

test("of two that nobody knew before the registry's first has it; who is left out costs nobody else", () => {
  const found = peers([
    node("a", "192.0.2.1", "10.0.0.0/13", "fd00:1::/64"),
    node("b", "192.0.2.2", "10.8.0.0/13"),
    node("c", "192.0.2.3", "10.9.1.0/24"),
    node("f", "192.0.2.2", "10.77.0.0/24"),
    node("h", "192.0.2.7", "10.78.0.0/24"),
    node("g", "192.0.2.6", "10.78.0.0/24"),
    node("i", "192.0.2.8", "10.16.0.0/16"),
  ]);
  expect(found.names).toEqual(["b", "h", "i"]);
  expect(found.refused).toContain(
    'node "g" is left out: it has "10.78.0.0/24", which overlaps with "10.78.0.0/24" of "h"',
  );
});

test("a record that is wrong in itself costs its own node only, and counts for no claim", () => {
  const found = peers([node("a", "192.0.2.1", "10.2.0.0/24", "2000::/3"), node("b", "192.0.2.1", "10.2.0.0/24")]);
  expect(found.names).toEqual(["b"]);
  expect(found.refused).toEqual([expect.stringContaining('node "a" is left out: its subnet "2000::/3" is too large')]);
});

test("agrees with a comparison of each with each, for many at random", () => {
  const below = random(7);
  for (let round = 0; round < 200; round++) {
    const others = Array.from({ length: 12 }, (_, i) => {
      const cidr = { ip: ipOf(4, (10n << 24n) + (BigInt(below(64)) << 13n)), prefix: 13 + below(7) };
      return node(`n${i}`, `192.0.2.${i}`, formatCidr({ ...cidr, ip: firstOf(cidr) }));
    });
    const { names } = peers(others);
    const kept = others.filter(({ name }) => names.includes(name));
    for (const a of kept)
      for (const b of kept)
        if (a !== b) expect(a.subnets.some((x) => b.subnets.some((y) => overlap(x, y)))).toBe(false);
    for (const each of others)
      if (!kept.includes(each))
        expect([self, ...kept].some((b) => b.subnets.some((y) => each.subnets.some((x) => overlap(x, y))))).toBe(true);
  }
});

test("what is refused is told of when it changes, and no more of it than anybody reads", () => {
  const lines: string[] = [];
  const log = new RefusalLog(createLogger("info", (line) => void lines.push(line)));
  const many = Array.from({ length: 50 }, (_, i) => `sentence ${i}`);
  for (const sentences of [[], many, many, ["one"], []]) log.tell(sentences);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { records: many.slice(0, 10), of: 50 },
    { records: ["one"], of: 1 },
    { message: "no records of the registry are refused any more" },
  ]);
});
