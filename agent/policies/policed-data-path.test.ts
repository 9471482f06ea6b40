import { expect, test } from "vitest";
import type { Owner } from "../../shared/cni/types.ts";
import { DataPathInMemory } from "../../test/fakes/parts-in-memory.ts";
import type { AttachRequest } from "../datapath/datapath.ts";
import type { NodePolicies } from "./node-policies.ts";
import { policed } from "./policed-data-path.ts";

const owner: Owner = { network: "pods", sandboxId: "a", ifname: "eth0" };
const nothing = { interfaces: [], ips: [], routes: [], dns: {} };
const request = (kind: AttachRequest["container"]["kind"]): AttachRequest => ({
  owner,
  container: { id: "a", netns: "/run/netns/a", kind },
  ipam: nothing,
  ownLease: true,
  pod: { namespace: "x", name: "a", uid: "u" },
});

/** What happens, in its order. */
function record(): { dataPath: DataPathInMemory; policies: NodePolicies; said: unknown[] } {
  const said: unknown[] = [];
  const dataPath = new DataPathInMemory();
  dataPath.before = (action) => void said.push(action);
  const policies = {
    admit: async (...args: unknown[]) => void said.push(["admit", ...args]),
    settle: async () => void said.push("settle"),
    forget: () => void said.push("forget"),
    problems: () => [{ code: 50, message: "no policies" }],
    degraded: (standing: readonly Owner[]) => standing.map(({ sandboxId }) => `${sandboxId} is closed`),
  };
  return { dataPath, policies: policies as unknown as NodePolicies, said };
}

test("a pod is closed before its interface is made, and forgotten after it is gone", async () => {
  const { dataPath, policies, said } = record();
  const wired = policed(dataPath, policies);
  await wired.attach(request({ t: "sandbox" }));
  await wired.attach({ ...request({ t: "sandbox" }), pod: undefined } as unknown as AttachRequest);
  await wired.attach(request({ t: "workload", sandboxId: "a" }));
  expect(said).toEqual([
    ...[["admit", owner, { namespace: "x", name: "a", uid: "u" }], "attach", "settle"],
    // Of no pod of Kubernetes.
    ...[["admit", owner, "none"], "attach", "settle"],
    // It joins the interface of its sandbox.
    "attach",
  ]);
  expect(await wired.degraded()).toEqual(["a is closed"]);
  expect(await wired.problems()).toEqual([{ code: 50, message: "no policies" }]);
  said.length = 0;
  await wired.detach(owner);
  expect(said).toEqual(["detach", "forget"]);
});

test("what cannot be closed is not made, and what cannot be removed stays known", async () => {
  const { dataPath, policies, said } = record();
  const wired = policed(dataPath, {
    ...policies,
    admit: () => Promise.reject(new Error("the switch is away")),
  } as never);
  await expect(wired.attach(request({ t: "sandbox" }))).rejects.toThrow("the switch is away");
  expect(said).toEqual([]);
  dataPath.before = () => {
    throw new Error("the kernel refuses");
  };
  await expect(wired.detach(owner)).rejects.toThrow("the kernel refuses");
  expect(said).toEqual([]);
});

test("it is else the same data path", async () => {
  const { dataPath, policies } = record();
  const wired = policed(dataPath, policies);
  await wired.start();
  expect(dataPath.starts).toBe(1);
  const missing = { owner, ownLease: true };
  dataPath.lost.set("pods\na\neth0", missing);
  expect(wired.missing?.()).toEqual([missing]);
  expect(await wired.remake?.(missing, [])).toBe(true);
  expect(wired.watch).toBe(undefined);
  expect(await wired.list()).toEqual([]);
});
