import { expect, test } from "vitest";
import type { Lease, LeaseState } from "../../ipam/mod.ts";
import type { Owner } from "../../shared/cni/types.ts";
import { ipOf } from "../../shared/net/ip.ts";
import type { Attached } from "../datapath/datapath.ts";
import { type ObservedNode, planReconcile } from "./reconcile-plan.ts";

const now = "boot-now";
const owner = (sandboxId: string, network = "pods"): Owner => ({ network, sandboxId, ifname: "eth0" });

function lease(id: string, state: LeaseState, changes: { bootId?: string; network?: string } = {}): Lease {
  return {
    owner: owner(id, changes.network),
    rangeSet: 0,
    address: { ip: ipOf(4, 0x0a000002n), prefix: 24 },
    state,
    bootId: changes.bootId ?? now,
    generation: 1,
    allocatedAtMs: 0,
  };
}

const standing = (id: string, ownLease = true, network = "pods"): Attached => ({
  owner: owner(id, network),
  hostIfname: `ve-${id}`,
  ownLease,
});

const ids = {
  adopt: (plan: ReturnType<typeof planReconcile>) => plan.adopt.map((attached) => attached.owner.sandboxId),
  finish: (plan: ReturnType<typeof planReconcile>) => plan.finish.map((one) => one.sandboxId),
  orphans: (plan: ReturnType<typeof planReconcile>) => plan.orphans.map((attached) => attached.owner.sandboxId),
  restore: (plan: ReturnType<typeof planReconcile>) => plan.restore.map((attached) => attached.owner.sandboxId),
  doubtful: (plan: ReturnType<typeof planReconcile>) => plan.doubtful.map(({ attached }) => attached.owner.sandboxId),
  missing: (plan: ReturnType<typeof planReconcile>) => plan.missing.map((one) => one.owner.sandboxId),
  suspect: (plan: ReturnType<typeof planReconcile>) => plan.stale.map((one) => one.owner.sandboxId),
};
type Part = keyof typeof ids;

const other = lease("other", "cooling");

test.each<[string, Partial<ObservedNode>, Partial<Record<Part, string[]>>]>([
  ["an empty node", {}, {}],
  ["lease and interface", { leases: [lease("a", "allocated")], interfaces: [standing("a")] }, { adopt: ["a"] }],
  ["an interface whose address another plugin keeps", { interfaces: [standing("a", false)] }, { adopt: ["a"] }],
  [
    "a releasing lease with its interface",
    { leases: [lease("a", "releasing")], interfaces: [standing("a")] },
    { finish: ["a"] },
  ],
  ["a releasing lease without one", { leases: [lease("a", "releasing")] }, { finish: ["a"] }],
  [
    "a pending detach of a delegated attachment",
    { pendingDetaches: [owner("a")], interfaces: [standing("a", false)] },
    { finish: ["a"] },
  ],
  [
    "a pending detach of an attachment that the agent gave the address of",
    { pendingDetaches: [owner("a")], leases: [lease("a", "allocated")], interfaces: [standing("a")] },
    { finish: ["a"] },
  ],
  [
    "one address of two that was given up, the sandbox added again",
    { leases: [lease("a", "releasing"), lease("a", "allocated")], interfaces: [standing("a")] },
    { adopt: ["a"] },
  ],
  [
    "an interface whose lease cools",
    { leases: [lease("a", "cooling")], interfaces: [standing("a")] },
    { orphans: ["a"] },
  ],
  ["an interface whose lease is gone", { leases: [other], interfaces: [standing("a")] }, { restore: ["a"] }],
  ["an interface, and a store that knows nothing of its network", { interfaces: [standing("a")] }, { restore: ["a"] }],
  [
    "an interface of a network that is not served",
    { leases: [lease("b", "allocated", { network: "far" })], interfaces: [standing("a", true, "far")] },
    { doubtful: ["a"] },
  ],
  ["a lease of this boot without an interface", { leases: [lease("a", "allocated")] }, { missing: ["a"] }],
  ["one of an earlier boot", { leases: [lease("a", "allocated", { bootId: "before" })] }, { suspect: ["a"] }],
  [
    "one of an earlier boot whose interface stands",
    { leases: [lease("a", "allocated", { bootId: "before" })], interfaces: [standing("a")] },
    { adopt: ["a"] },
  ],
  ["one of a boot without a name", { leases: [lease("a", "allocated", { bootId: "" })] }, { missing: ["a"] }],
  [
    "one of another main plugin's network",
    { leases: [lease("a", "allocated", { bootId: "before", network: "bridged" })] },
    {},
  ],
])("%s", (_name, node, wanted) => {
  const plan = planReconcile({
    leases: [],
    interfaces: [],
    pendingDetaches: [],
    networks: ["pods"],
    bootId: now,
    ...node,
  });
  for (const part of Object.keys(ids) as Part[]) expect([part, ids[part](plan)]).toEqual([part, wanted[part] ?? []]);
});

test("where the boot has no name no lease is suspect", () => {
  const leases = [lease("a", "allocated", { bootId: "before" })];
  const plan = planReconcile({ leases, interfaces: [], pendingDetaches: [], networks: ["pods"], bootId: "" });
  expect(ids.missing(plan)).toEqual(["a"]);
});
