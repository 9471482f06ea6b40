import { expect, test } from "vitest";
import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import { type Ip, ipOf } from "../../../../shared/net/ip.ts";
import type { AddressSet, NodePolicies, PodRule } from "../../policies.ts";
import { policyTable } from "./bridge-policies.ts";
import { changesBetween, type PacketProgram } from "./packet-program.ts";
import { policyProgram } from "./policy-program.ts";
import { RuleChains } from "./rule-chains.ts";

const table = policyTable("br0");
const ruleChains = new RuleChains(table, [4]);
const owner = (i: number): Owner => ({ network: "pods", sandboxId: `sandbox-${i}`, ifname: "eth0" });
const pods = Array.from({ length: 20 }, (_, i) => ({
  owner: owner(i),
  ips: [ipOf(4, 0x0a00_0002n + BigInt(i))],
  mac: "02:00:00:00:00:02",
  port: 100 + i,
  bridge: "br0",
}));
const addresses = (count: number, from = 0x0b00_0000n): Ip[] =>
  Array.from({ length: count }, (_, i) => ipOf(4, from + BigInt(i)));

const rule = (i: number, set: AddressSet, first = 80): PodRule => ({
  id: `rule-${i}`,
  policy: { namespace: "x", name: `policy-${i}`, uid: `uid-${i}` },
  direction: "ingress",
  targets: [owner(i % pods.length)],
  peers: { sets: [set], blocks: [] },
  ports: [{ protocol: "TCP", first }],
});

const isolated: NodePolicies["isolated"] = new Map(
  pods.map(({ owner }) => [ownerKey(owner), { owner, directions: ["ingress"], by: [] }]),
);

const programOf = (rules: readonly PodRule[]): { program: PacketProgram; refused: readonly unknown[] } =>
  policyProgram(
    table,
    { rules: new Map(rules.map((each) => [each.id, each])), isolated },
    pods,
    [{ name: "br0", mac: Uint8Array.of(2, 0, 0, 0, 0, 1) }],
    ruleChains,
  );

const actions = (before: readonly PodRule[], after: readonly PodRule[]) => {
  const { prepare, put, sweep } = changesBetween(programOf(before).program, programOf(after).program);
  return [prepare, put, sweep].map((messages) => messages.map(({ action }) => action().replace(/ of the table.*/, "")));
};

const big: AddressSet = { name: "big", ips: addresses(15_000) };
const small: AddressSet = { name: "small", ips: addresses(3) };
const many = Array.from({ length: 400 }, (_, i) => rule(i, i % 100 === 0 ? big : small));
const name = (kind: string): unknown => expect.stringMatching(new RegExp(`"${kind}-[0-9a-f]{20}"$`));

test("another member of a set of 15,000 is one element less and one more", () => {
  const other: AddressSet = { name: "big", ips: [...big.ips.slice(1), ipOf(4, 1n)] };
  const changed = many.map((each, i) => (i % 100 === 0 ? rule(i, other) : each));
  expect(actions(many, changed)).toEqual([
    [],
    [expect.stringMatching(/^delete elements/), expect.stringMatching(/^add elements/)],
    [],
  ]);
});

test("the same again changes nothing", () => {
  expect(actions(many, [...many])).toEqual([[], [], []]);
});

test("one rule more is prepared, and then put into its pod's chain alone; one rule less is swept", () => {
  const more = [...many, rule(401, small)];
  const [prepare, put, sweep] = actions(many, more);
  expect(prepare).toHaveLength(6);
  // The pod's rules, and what drops the rest.
  expect(put).toEqual([expect.stringMatching(/^clear/), ...Array.from({ length: 22 }, () => name("to"))]);
  expect(sweep).toEqual([]);
  expect(actions(more, many)[2]).toEqual([name("rule"), name("rule"), name("passed"), name("opened")]);
});

test("a rule that says something else is another chain with the same counters", () => {
  const [prepare = [], , sweep = []] = actions([rule(1, small)], [rule(1, small, 81)]);
  expect(prepare.filter((action) => action.includes("counter"))).toEqual([]);
  expect(sweep).toEqual([name("rule"), name("rule"), name("ports")]);
});

test("a pod that comes changes maps and its own chain, whatever rules there are", () => {
  const wanted: NodePolicies = { rules: new Map(many.map((each) => [each.id, each])), isolated };
  const bridges = [{ name: "br0", mac: Uint8Array.of(2, 0, 0, 0, 0, 1) }];
  const [without, withIt] = [pods.slice(1), pods].map(
    (of) => policyProgram(table, wanted, of, bridges, ruleChains).program,
  ) as [PacketProgram, PacketProgram];
  expect(withIt.parts[0]).toBe(without.parts[0]);
  const { prepare, put, sweep } = changesBetween(without, withIt);
  // Its counter and chain with 20 rules and the last one; then addresses, itself, and its port.
  expect([prepare.length, put.length, sweep.length]).toEqual([24, 3, 0]);
});

test("a rule with more ranges than the node takes is refused, and others are not", () => {
  const blocks = Array.from({ length: 70_000 }, (_, i) => ({
    t: "block" as const,
    cidr: { ip: ipOf(4, BigInt(i * 2)), prefix: 32 },
    except: [],
  }));
  const huge: PodRule = { ...rule(1, small), id: "huge", peers: { sets: [], blocks } };
  const { program, refused } = programOf([huge, rule(2, small)]);
  expect(refused).toEqual([{ id: "huge", reason: expect.stringContaining("70001 ranges") }]);
  expect([...(program.parts[0]?.chains.keys() ?? [])]).toHaveLength(1);
});
