import { policyService } from "../../shared/proto/daemon-services.ts";
import { type Rpc, rpc } from "../../shared/server/handlers.ts";
import type { PolicyName } from "../datapath/policies.ts";
import type { NodePolicies } from "../policies/mod.ts";

export const nameOf = ({ namespace, name }: PolicyName): string => `${namespace}/${name}`;

/** What people ask about the network policies of this node. */
export function policyRpcs(enforced: () => Pick<NodePolicies, "isolated" | "ruleOf"> | undefined): readonly Rpc[] {
  return [
    rpc(policyService.list, ({ rule: number }) => {
      const policies = enforced();
      if (policies === undefined) return Promise.resolve({ rule: undefined, isolated: [] });
      const rule = policies.ruleOf(number);
      return Promise.resolve({
        rule: rule === undefined ? undefined : { policy: nameOf(rule.policy), direction: rule.direction },
        isolated: Array.from(policies.isolated, ({ owner, directions, by }) => ({
          ...{ network: owner.network, containerId: owner.sandboxId, ifname: owner.ifname },
          ...{ directions, policies: by.map(nameOf) },
        })),
      });
    }),
  ];
}
