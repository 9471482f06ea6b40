import { expect, test } from "vitest";
import { firstOf, formatCidr, ipOf, overlap } from "../../shared/ip.ts";
import { createLogger } from "../../shared/log.ts";
import { random } from "../../test/support/random.ts";
import type { ClusterNode } from "./node-registry.ts";
import { nodeOfText } from "./node-text.ts";
import { ClashLog, peersOf } from "./peers.ts";

const node = (name: string, address: string, ...subnets: string[]): ClusterNode =>
  nodeOfText({ name, addresses: address === "" ? [] : [address], subnets });
const self = node("m", "192.0.2.100", "10.1.0.0/24", "fd00:1::/64");

function peers(...others: ClusterNode[]): { names: string[]; excluded: readonly string[] } {
  let excluded: readonly string[] = [];
  const map = new Map([self, ...others].map((each) => [each.name, each]));
  const found = peersOf(self, map, (sentences) => {
    excluded = sentences;
  });
  return { names: [...found.keys()], excluded };
}

test("the others are peers, by name, as soon as they have an address and a subnet", () => {
  const found = peers(
    node("z", "192.0.2.3", "10.3.0.0/24"),
    node("a", "192.0.2.1", "10.2.0.0/24", "fd00:2::/64"),
    node("early", "192.0.2.4"),
    node("nowhere", "", "10.4.0.0/24"),
  );
  expect(found).toEqual({ names: ["a", "z"], excluded: [] });
});

test.each([
  ["a subnet around ours", ["192.0.2.1", "10.0.0.0/8"], '"10.0.0.0/8", which overlaps with "10.1.0.0/24" of "m"'],
  ["a part of ours", ["192.0.2.1", "10.1.0.128/25"], '"10.1.0.128/25", which overlaps with "10.1.0.0/24" of "m"'],
  ["our address", ["192.0.2.100", "10.2.0.0/24"], '"192.0.2.100", the address of "m"'],
] as const)("nobody takes %s away", (_name, [address, subnet], is) => {
  const found = peers(node("a", address, subnet), node("b", "192.0.2.2", "10.9.0.0/24"));
  expect(found).toEqual({ names: ["b"], excluded: [`node "a" is left out: it has ${is}`] });
});

test("of several that want the same the smallest has it, then the first by name; who is left out costs nobody else", () => {
  const found = peers(
    node("a", "192.0.2.1", "10.0.0.0/9", "fd00:1::/64"),
    node("b", "192.0.2.2", "10.8.0.0/13"),
    node("c", "192.0.2.3", "10.9.1.0/24"),
    node("d", "192.0.2.4", "10.9.0.0/16"),
    node("e", "192.0.2.5", "10.9.1.128/25"),
    node("f", "192.0.2.5", "10.77.0.0/24"),
    node("g", "192.0.2.6", "10.78.0.0/24"),
    node("h", "192.0.2.7", "10.78.0.0/24"),
    node("i", "192.0.2.8", "10.12.0.0/16"),
  );
  expect(found.names.sort()).toEqual(["e", "g", "i"]);
  expect(found.excluded).toContain(
    'node "h" is left out: it has "10.78.0.0/24", which overlaps with "10.78.0.0/24" of "g"',
  );
});

test("agrees with a comparison of each with each, for many at random", () => {
  const below = random(7);
  for (let round = 0; round < 200; round++) {
    const others = Array.from({ length: 12 }, (_, i) => {
      const cidr = { ip: ipOf(4, BigInt(below(64)) << 18n), prefix: 8 + below(7) };
      return node(`n${i}`, `192.0.2.${i}`, formatCidr({ ...cidr, ip: firstOf(cidr) }));
    });
    const names = peers(...others).names;
    const kept = others.filter(({ name }) => names.includes(name));
    for (const a of kept)
      for (const b of kept)
        if (a !== b) expect(a.subnets.some((x) => b.subnets.some((y) => overlap(x, y)))).toBe(false);
    for (const each of others)
      if (!kept.includes(each))
        expect([self, ...kept].some((b) => b.subnets.some((y) => each.subnets.some((x) => overlap(x, y))))).toBe(true);
  }
});

test("what is left out is told of when it changes, and no more of it than anybody reads", () => {
  const lines: string[] = [];
  const log = new ClashLog(createLogger("info", (line) => void lines.push(line)));
  const many = Array.from({ length: 50 }, (_, i) => `sentence ${i}`);
  for (const sentences of [[], many, many, ["one"], []]) log.tell(sentences);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { nodes: many.slice(0, 10), of: 50 },
    { nodes: ["one"], of: 1 },
    { message: "no nodes are left out any more" },
  ]);
});
