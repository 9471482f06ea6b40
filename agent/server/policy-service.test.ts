import { expect, test } from "vitest";
import { policyService } from "../../shared/proto/daemon-services.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import type { PodRule } from "../datapath/policies.ts";
import { policyRpcs } from "./policy-service.ts";

const owner = { network: "pods", sandboxId: "s1", ifname: "eth0" };
const policy = { namespace: "x", name: "web", uid: "u" };
const rule: PodRule = { id: "r", policy, direction: "ingress", targets: [owner] };

test("names a rule by its number, and tells what is isolated by which policies", async () => {
  const enforced = {
    isolated: [{ owner, directions: ["ingress"] as const, by: [policy] }],
    ruleOf: (number: number) => (number === 7 ? rule : undefined),
  };
  const ask = async (of: typeof enforced | undefined, request: object): Promise<unknown> => {
    const [rpc] = policyRpcs(() => of);
    expect(rpc?.method.path).toBe(policyService.list.path);
    return await rpc?.handle({ rule: 0, ...request }, {} as CallContext);
  };
  const isolated = [
    { network: "pods", containerId: "s1", ifname: "eth0", directions: ["ingress"], policies: ["x/web"] },
  ];
  expect(await ask(enforced, { rule: 7 })).toEqual({ rule: { policy: "x/web", direction: "ingress" }, isolated });
  expect(await ask(enforced, { rule: 8 })).toEqual({ rule: undefined, isolated });
  expect(await ask(undefined, {})).toEqual({ rule: undefined, isolated: [] });
});
