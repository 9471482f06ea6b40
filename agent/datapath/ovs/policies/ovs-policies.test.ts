import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import { CniCode } from "../../../../shared/errors.ts";
import { parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import { type Change, SwitchInMemory } from "../../../../test/fakes/openflow/switch-in-memory.ts";
import type { NodePolicies, PodRule } from "../../policies.ts";
import type { PipelineContext } from "../pipeline/context.ts";
import { Category } from "../pipeline/cookie.ts";
import { podFlows } from "../pipeline/mod.ts";
import { tables } from "../pipeline/tables.ts";
import { OpenFlowProgram } from "../program/mod.ts";
import { OvsPolicies } from "./ovs-policies.ts";

const context: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 2, mac: "0e:00:0a:0a:01:01", addresses: [parseIp("10.10.1.1")!] },
  nodeAddresses: [],
  podSubnets: [parseCidr("10.10.1.0/24")!],
  multitenant: false,
};
const owner = { network: "pods", sandboxId: "web", ifname: "eth0" };
const web = { ofport: 11, mac: "0a:00:0a:0a:01:02", ips: [parseIp("10.10.1.2")!], vnid: 0 };
const interfaces = new Map([[ownerKey(owner), web]]);
const policy = { namespace: "shop", name: "p", uid: "u" };

const rule = (id: string, direction: Direction): PodRule => ({ id, policy, direction, targets: [owner] });
const wanting = (...rules: readonly PodRule[]): NodePolicies => ({
  rules: new Map(rules.map((one) => [one.id, one])),
  isolated: new Map([[ownerKey(owner), { owner, directions: ["ingress", "egress"], by: [policy] }]]),
});

let flows: SwitchInMemory;
beforeEach(async () => {
  flows = new SwitchInMemory();
  await flows.listen();
});
afterEach(() => flows[Symbol.asyncDispose]());

const start = (bounds: Partial<Record<"bundleMessages" | "setMs", number>> = {}): Promise<OpenFlowProgram> => {
  const rounds = { loadRound: async () => undefined, saveRound: async () => undefined };
  return OpenFlowProgram.start({ management: flows.management, rounds, bounds });
};
/** Tells the program of pods as a node does. */
const connect = (program: OpenFlowProgram, policies: OvsPolicies): Promise<void> =>
  program.set(
    new Map([
      ...policies.alongside(interfaces),
      [`pod/${ownerKey(owner)}`, { category: Category.pod, flows: podFlows(context, web) }],
    ]),
  );
const tablesOf = (changes: readonly Change[]): ReadonlySet<number> =>
  new Set(changes.flatMap((change) => (change.t === "flow" ? [change.table] : [])));
const isFilled = (program: OpenFlowProgram) => expect.poll(() => program.status.connected).toBe(true);

describe("policies of a switch", () => {
  test("that are known before it is set up are there with the first flow of a pod", async () => {
    const policies = new OvsPolicies(flows.management);
    await expect(policies.enforce(wanting(rule("r", "ingress")))).rejects.toMatchObject({
      code: CniCode.tryAgainLater,
    });
    await using program = await start();
    await isFilled(program);
    policies.begin(program, context, async () => undefined);
    await connect(program, policies);
    const first = flows.done.find((changes) => tablesOf(changes).has(tables.Classifier)) ?? [];
    for (const table of ["IngressRule", "IngressDefaultRule", "EgressDefaultRule"] as const)
      expect(tablesOf(first)).toContain(tables[table]);
  });

  test("are filled in before pods after a restart, where one bundle does not hold all", async () => {
    await using program = await start({ bundleMessages: 6 });
    await isFilled(program);
    const policies = new OvsPolicies(flows.management);
    policies.begin(program, context, async () => undefined);
    await connect(program, policies);
    await policies.enforce(wanting(rule("r", "ingress")));
    flows.done.length = 0;
    flows.cut(true);
    await expect.poll(() => [...flows.flows.keys()]).toContain(`${tables.Classifier}/190`);
    const [refusing, connecting] = [tables.IngressDefaultRule, tables.Classifier].map((table) =>
      flows.done.findIndex((changes) => tablesOf(changes).has(table)),
    );
    expect(refusing).toBeGreaterThanOrEqual(0);
    expect(refusing).toBeLessThan(connecting ?? 0);
  });

  test("are kept while it is away, and are there with its next connection", async () => {
    await using program = await start({ setMs: 100 });
    await isFilled(program);
    const policies = new OvsPolicies(flows.management);
    policies.begin(program, context, async () => undefined);
    await connect(program, policies);
    await flows.close();
    await expect.poll(() => program.status.connected).toBe(false);
    await expect(policies.enforce(wanting(rule("r", "ingress")))).rejects.toMatchObject({
      code: CniCode.tryAgainLater,
    });
    expect(await policies.differences()).toEqual([expect.stringContaining("the switch is away")]);
    await flows.listen();
    await expect.poll(() => [...flows.flows.keys()]).toContain(`${tables.IngressDefaultRule}/200`);
    expect(await policies.enforce(wanting(rule("r", "ingress")))).toEqual([]);
  });

  test("are in force but for the rules that it refuses, which are closed and named", async () => {
    await using program = await start();
    await isFilled(program);
    const policies = new OvsPolicies(flows.management);
    policies.begin(program, context, async () => undefined);
    await connect(program, policies);
    await policies.enforce(wanting());
    // OFPET_FLOW_MOD_FAILED, "table full": it has no room for what the rule counts by.
    flows.refuse = (change) =>
      change.t === "flow" && change.table === tables.EgressMetric && change.priority === 190 ? [5, 1] : undefined;
    const refused = await policies.enforce(wanting(rule("bad", "egress"), rule("good", "ingress")));
    expect(refused).toEqual([{ id: "bad", reason: expect.stringContaining("OFPFMFC_TABLE_FULL") }]);
    const isThere = (table: keyof typeof tables, priority: number) => flows.flows.has(`${tables[table]}/${priority}`);
    expect([isThere("IngressMetric", 190), isThere("EgressMetric", 190), isThere("EgressDefaultRule", 200)]).toEqual([
      true,
      false,
      true,
    ]);
    // Rules that come later are not taken for it.
    const third = rule("third", "ingress");
    const still = await policies.enforce(wanting(rule("bad", "egress"), rule("good", "ingress"), third));
    expect(still.map(({ id }) => id)).toEqual(["bad"]);
    // As soon as it takes it.
    flows.refuse = () => undefined;
    expect(await policies.enforce(wanting(rule("bad", "egress"), rule("good", "ingress")))).toEqual([]);
    expect(isThere("EgressMetric", 190)).toBe(true);
  });

  test("cannot be counted or compared before it is set up", async () => {
    const policies = new OvsPolicies(flows.management);
    await expect(policies.counts()).rejects.toThrow("the switch is not set up yet");
    await expect(policies.differences()).rejects.toThrow("the switch is not set up yet");
  });
});
