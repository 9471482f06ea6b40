import { describe, expect, test } from "vitest";
import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import type { Owner } from "../../../../shared/cni/types.ts";
import { parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { type Flow, flowText } from "../../../protocols/openflow/mod.ts";
import type { AddressSet, NodePolicies, PodRule } from "../../policies.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import { tables } from "../pipeline/tables.ts";
import type { FlowSetChanges } from "../program/flow-set.ts";
import { PolicyFlows } from "./policy-flows.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

const context: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 2, mac: "0e:00:0a:0a:01:01", addresses: [ip("10.10.1.1"), ip("fd00:10:1::1")] },
  nodeAddresses: [cidr("172.30.0.1/24")],
  podSubnets: [cidr("10.10.1.0/24"), cidr("fd00:10:1::/64")],
  kernelServices: [cidr("10.96.0.0/16")],
  joinsSctp: true,
  multitenant: false,
};

const owner = (sandboxId: string): Owner => ({ network: "pods", sandboxId, ifname: "eth0" });
const [web, db] = [owner("web"), owner("db")];
const interfaces = new Map([
  [ownerKey(web), { ofport: 11, ips: [ip("10.10.1.2"), ip("fd00:10:1::2")] }],
  [ownerKey(db), { ofport: 12, ips: [ip("10.10.1.3")] }],
]);
const policy = { namespace: "shop", name: "p", uid: "u" };

const set = (name: string, ...ips: string[]): AddressSet => ({ name, ips: ips.map(ip) });
const block = (text: string, ...except: string[]) =>
  ({ t: "block", cidr: cidr(text), except: except.map(cidr) }) as const;
const rule = (changes: Partial<PodRule> = {}): PodRule => ({
  id: "r",
  policy,
  direction: "ingress",
  targets: [web, db],
  peers: { sets: [set("clients", "10.10.2.2", "10.10.2.3")], blocks: [block("10.20.0.0/16", "10.20.128.0/17")] },
  ports: [
    { protocol: "TCP", first: 80, last: 90 },
    { protocol: "UDP", first: 53 },
  ],
  ...changes,
});

const wanting = (rules: readonly PodRule[], isolated: readonly Owner[] = []): NodePolicies => ({
  rules: new Map(rules.map((one) => [one.id, one])),
  isolated: new Map(
    isolated.map((one) => [ownerKey(one), { owner: one, directions: ["ingress", "egress"], by: [policy] }]),
  ),
});

const started = (bounds?: ConstructorParameters<typeof PolicyFlows>[2]): PolicyFlows => {
  const flows = new PolicyFlows(context, 0x1234n << 32n, bounds);
  flows.connect(interfaces);
  return flows;
};

/** The switch's flows, as these changes make them. */
class Switch {
  readonly #flowSets = new Map<string, readonly Flow[]>();

  take(changes: FlowSetChanges): this {
    for (const [key, flowSet] of changes) this.#flowSets.set(key, flowSet?.flows ?? []);
    return this;
  }

  get flows(): readonly Flow[] {
    return [...this.#flowSets.values()].flat();
  }

  /** As ovs-ofctl writes them. */
  get text(): readonly string[] {
    return this.flows.map((flow) => flowText(flow));
  }

  get labels(): readonly string[] {
    return this.text.flatMap((line) => /priority=210,ct_label=(\w+)/.exec(line)?.[1] ?? []);
  }
}

const nameOf = new Map(Object.entries(tables).map(([name, number]) => [number as number, name]));

test("all flows of some policies, word for word", async () => {
  const flows = started();
  const out = rule({ id: "out", direction: "egress", targets: [web], ports: [{ protocol: "SCTP" }] });
  const { ports: _, peers: __, ...rest } = rule({ id: "any", direction: "egress", targets: [db] });
  flows.want(wanting([rule(), out, rest], [web, db]));
  const { flows: all } = new Switch().take(flows.take());
  const sections = [...Map.groupBy(all, ({ table }) => table)]
    .sort(([a], [b]) => a - b)
    .map(([table, own]) => {
      const lines = own.map((one) => flowText(one).replace(`table=${table}, `, "")).sort();
      return [`# ${nameOf.get(table)} (${table})`, ...lines, ""].join("\n");
    });
  await expect(sections.join("\n")).toMatchFileSnapshot("../pipeline/flows/policies.txt");
});

test("without policies there is nothing to tell the switch, whatever pods come and go", () => {
  const flows = started();
  flows.connect(new Map([[ownerKey(web), undefined]]));
  flows.want(wanting([]));
  expect(flows.take()).toEqual(new Map());
});

describe("a rule's label", () => {
  const clients = (...ips: string[]) => ({ peers: { sets: [set("clients", ...ips)], blocks: [] } });
  test.each<[string, Partial<PodRule>, Partial<PodRule>]>([
    ["a member of a set goes", clients("10.10.2.2", "10.10.2.3"), clients("10.10.2.2")],
    ["a set goes", {}, { peers: { sets: [], blocks: rule().peers?.blocks ?? [] } }],
    ["a block gets an exception", {}, { peers: { sets: [], blocks: [block("10.20.0.0/16", "10.20.0.0/17")] } }],
    ["a port goes", {}, { ports: [{ protocol: "TCP", first: 80, last: 89 }] }],
    ["a pod goes", {}, { targets: [web] }],
  ])("changes when %s", (_, before, after) => {
    const flows = started();
    const made = new Switch();
    flows.want(wanting([rule(before)]));
    const [first] = made.take(flows.take()).labels;
    flows.want(wanting([rule(after)]));
    expect(made.take(flows.take()).labels).not.toEqual([first]);
    expect(made.labels).toHaveLength(1);
  });

  test("changes when anybody and any port become some", () => {
    const flows = started();
    const made = new Switch();
    const { ports: _, peers: __, ...anything } = rule();
    flows.want(wanting([anything]));
    const [first] = made.take(flows.take()).labels;
    flows.want(wanting([{ ...anything, ports: [{ protocol: "TCP" }] }]));
    const [second] = made.take(flows.take()).labels;
    flows.want(wanting([rule()]));
    expect(new Set([first, second, ...made.take(flows.take()).labels]).size).toBe(3);
  });

  test("changes when a pod's interface becomes another one or goes", () => {
    const flows = started();
    const made = new Switch();
    flows.want(wanting([rule()]));
    const [first] = made.take(flows.take()).labels;
    flows.connect(new Map([[ownerKey(web), { ofport: 13, ips: [ip("10.10.1.2")] }]]));
    const [second] = made.take(flows.take()).labels;
    flows.connect(new Map([[ownerKey(web), undefined]]));
    expect(new Set([first, second, ...made.take(flows.take()).labels]).size).toBe(3);
    expect(made.text.filter((line) => /reg1=(0xb|0xd)\b/.test(line))).toEqual([]);
  });

  test("stays as long as the rule comes to allow more, or the same in other words", () => {
    const flows = started();
    const made = new Switch();
    flows.want(wanting([rule(clients("10.10.2.2"))]));
    const first = made.take(flows.take()).labels;
    flows.want(wanting([rule(clients("10.10.2.4", "10.10.2.2"))]));
    flows.want(wanting([rule({ ...clients("10.10.2.4", "10.10.2.2"), targets: [db, web] })]));
    flows.connect(new Map([[ownerKey(owner("other")), { ofport: 13, ips: [ip("10.10.1.4")] }]]));
    expect(made.take(flows.take()).labels).toEqual(first);
  });

  test("is never one that an earlier agent gave", () => {
    const [one, other] = [1n, 2n].map((start) => {
      const flows = new PolicyFlows(context, start << 32n);
      flows.want(wanting([rule()]));
      return new Switch().take(flows.take());
    });
    expect(one?.labels).not.toEqual(other?.labels);
    // While the numbers of conjunctive matches are, so that a start changes little.
    const numbers = (from: Switch | undefined) => from?.text.flatMap((line) => /conj_id=(\d+)/.exec(line)?.[1] ?? []);
    expect(numbers(one)).toEqual(numbers(other));
  });
});

describe("what several rules name", () => {
  test("is one flow with the conjunctions of all, which goes with the last of them", () => {
    const flows = started();
    const made = new Switch();
    const peers = { sets: [set("one", "10.10.2.2"), set("other", "10.10.2.2")], blocks: [block("10.10.2.2/32")] };
    flows.want(wanting([rule({ peers }), rule({ id: "second", peers })]));
    const member = () => made.text.filter((line) => line.includes("nw_src=10.10.2.2 "));
    made.take(flows.take());
    expect(member()).toEqual([expect.stringMatching(/actions=conjunction\(\d+,2\/3\),conjunction\(\d+,2\/3\)$/)]);
    flows.want(wanting([rule({ id: "second", peers: { ...peers, sets: [] } })]));
    made.take(flows.take());
    expect(member()).toEqual([expect.stringMatching(/actions=conjunction\(\d+,2\/3\)$/)]);
    flows.want(wanting([]));
    made.take(flows.take());
    expect(member()).toEqual([]);
  });

  test("a change is told with what it concerns, and not with all members", () => {
    const flows = started();
    const ips = Array.from({ length: 3_000 }, (_, i) => `10.11.${i >> 8}.${i & 255}`);
    flows.want(wanting([rule({ peers: { sets: [set("many", ...ips)], blocks: [] } })]));
    const told = (changes: FlowSetChanges) => [...changes.values()].flatMap((flowSet) => flowSet?.flows ?? []).length;
    expect(told(flows.take())).toBeGreaterThan(3_000);
    flows.want(wanting([rule({ peers: { sets: [set("many", ...ips.slice(1))], blocks: [] } })]));
    expect(told(flows.take())).toBeLessThan(30);
  });
});

describe("limits", () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => rule({ id: `r${i}` }));

  test("a flow with too many conjunctions is split, and what no slice holds is refused", () => {
    const flows = started({ rulesOfSlice: 3, slices: 2 });
    const refused = flows.want(wanting(many(7)));
    expect(refused).toEqual([
      { id: "r6", reason: "there are 6 others for this direction, as many as the switch takes" },
    ]);
    const made = new Switch().take(flows.take());
    const port = made.text.filter((line) => line.includes("table=204") && line.includes("reg1=0xb"));
    expect(port.map((line) => [line.split("conjunction").length - 1, line.includes("reg6=0/0x1")])).toEqual([
      [3, false],
      [3, true],
    ]);
    // What goes makes room.
    expect(flows.want(wanting(many(7).slice(1)))).toEqual([]);
  });

  test("a rule that would need too many flows is refused alone, and taken as soon as there is room", () => {
    const flows = started({ flows: 300 });
    const ips = Array.from({ length: 280 }, (_, i) => `10.11.${i >> 8}.${i & 255}`);
    const large = rule({ id: "large", peers: { sets: [set("many", ...ips)], blocks: [] } });
    expect(flows.want(wanting([rule(), large, rule({ id: "after" })]))).toEqual([
      { id: "large", reason: expect.stringMatching(/^with it the node's policies would take \d+ flows, wanted 300/) },
    ]);
    const made = new Switch().take(flows.take());
    expect(made.text.filter((line) => line.includes("10.11."))).toEqual([]);
    expect(made.labels).toHaveLength(2);
    expect(flows.want(wanting([large]))).toEqual([]);
    expect(made.take(flows.take()).text.filter((line) => line.includes("10.11."))).toHaveLength(280);
  });
});
