import { expect, test } from "vitest";
import { seed } from "../../../support/seed.ts";
import { brokenByItself } from "../model.ts";
import { icmpOf, parseFrame } from "../parse.ts";
import type { Rule } from "../rules.ts";
import { sampleWorld } from "../sample-world.ts";
import { numberIn } from "../token.ts";
import { Draw } from "./draw.ts";
import { Grammar, type Shot } from "./frames.ts";
import { vocabularyOf } from "./vocabulary.ts";

const mtu = 1450;
const world = sampleWorld();
const grammarOf = (from: number): Grammar => new Grammar(new Draw(from), vocabularyOf(world), world, mtu);

function shots(from: number, count: number): readonly Shot[] {
  const grammar = grammarOf(from);
  return Array.from({ length: count }, () => grammar.next()).flat();
}

test("a seed makes the same frames, another one others", () => {
  expect(shots(seed, 200)).toEqual(shots(seed, 200));
  expect(shots(seed, 200)).not.toEqual(shots(seed + 1, 200));
  // Whatever is sent beside them.
  const grammar = grammarOf(seed);
  const { ownMac, own } = vocabularyOf(world);
  const beside = Array.from({ length: 200 }, () => {
    grammar.control(own[4], ownMac);
    return grammar.next();
  });
  expect(beside.flat()).toEqual(shots(seed, 200));
});

test("every frame can be sent, and is known again by its end", () => {
  // A first fragment is known by what comes of it.
  const wrong = shots(seed, 5_000).filter(
    ({ bytes, number }) => bytes.length > mtu + 14 || (number !== 0 && numberIn(bytes) !== number),
  );
  expect(wrong).toEqual([]);
});

test("whatever a rule forbids is said again and again, and so is what is allowed", () => {
  const counts = new Map<Rule | "allowed", number>();
  for (const { bytes } of shots(seed, 5_000)) {
    const rule = brokenByItself(world, parseFrame(bytes)) ?? "allowed";
    counts.set(rule, (counts.get(rule) ?? 0) + 1);
  }
  const own: readonly (Rule | "allowed")[] = [
    ...(["untagged", "ownMac", "etherType", "malformed", "ownAddress", "arpAboutItself", "allowed"] as const),
    ...(["neighbourAboutItself", "router", "redirect", "dhcp", "loopback"] as const),
  ];
  for (const rule of own) expect(counts.get(rule) ?? 0, rule).toBeGreaterThan(10);
});

test("types, protocols, headers and fragments of all kinds occur", () => {
  const all = shots(seed, 12_000).map(({ bytes, words }) => ({ frame: parseFrame(bytes), bytes, words }));
  const types = new Set(all.map(({ frame }) => frame.type));
  const protocols = new Set(all.map(({ frame }) => frame.ip?.protocol));
  expect(types.size).toBeGreaterThan(300);
  for (const type of [0x0800, 0x0806, 0x86dd, 0x8847, 0x8863, 0x88cc, 0x88e5]) expect(types).toContain(type);
  expect(protocols.size).toBeGreaterThan(150);
  const messages = new Set(all.flatMap(({ frame }) => (frame.ip?.family === 6 ? (icmpOf(frame.ip)?.type ?? []) : [])));
  for (const type of [1, 128, 130, 133, 134, 135, 136, 137, 143]) expect(messages).toContain(type);
  const said = all.map(({ words }) => words).join("\n");
  const kinds = [
    "hop-by-hop",
    "routing 0",
    "segment routing",
    "mobility",
    "HIP",
    "shim6",
    "AH",
    "jumbogram",
    "home address",
  ];
  const others = [
    "loose source route",
    "tiny first fragment",
    "second fragment",
    "Geneve of",
    "VXLAN of",
    "GRE of",
    "STT of",
  ];
  const mutations = [
    "bits flipped",
    "cut",
    "padded",
    "bytes put in",
    "bytes taken out",
    "BPDU",
    "802.1ad",
    "IP in IP of",
  ];
  for (const kind of [...kinds, ...others, ...mutations]) expect(said).toContain(kind);
});
