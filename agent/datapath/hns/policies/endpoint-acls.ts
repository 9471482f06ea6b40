import { ownerKey } from "../../../../shared/cni/owner-key.ts";
import { formatCidr, hostBlock, type Ip } from "../../../../shared/net/ip.ts";
import type { Isolation, NodePolicies, PodRule, RefusedRule } from "../../policies.ts";
import { type Acl, aclId } from "./acl.ts";
import { aclDirection, aclsOf, priorities } from "./rule-acls.ts";

/** What one rule comes to at one endpoint. */
export interface RulePart {
  readonly id: string;
  readonly acls: readonly Acl[];
}

/** What a pod's rules come to. */
export interface PodRules {
  readonly parts: readonly RulePart[];
  readonly refused: readonly RefusedRule[];
}

/** Of rules at one endpoint. Nobody says what HNS takes; each change sends all of them, and costs time with each. */
const maxAcls = 500;
/** Characters of all rules' ACLs of one endpoint, which are one document with them: some 20,000 addresses. */
const maxChars = 400_000;

const directions = ["ingress", "egress"] as const;

/** Translates rules, each once, and remembers for whom. */
export class EndpointAcls {
  readonly #ofRules = new WeakMap<PodRule, readonly Acl[] | RefusedRule>();
  readonly #ofPods = new WeakMap<NodePolicies, ReadonlyMap<string, PodRules>>();

  /** By owners' keys: those of which a rule exists. */
  rulesOf(wanted: NodePolicies): ReadonlyMap<string, PodRules> {
    const known = this.#ofPods.get(wanted);
    if (known !== undefined) return known;
    const rules = new Map<string, PodRule[]>();
    for (const rule of wanted.rules.values())
      for (const target of rule.targets) {
        const key = ownerKey(target);
        if (wanted.isolated.get(key)?.directions.includes(rule.direction) !== true) continue;
        const before = rules.get(key);
        if (before === undefined) rules.set(key, [rule]);
        else before.push(rule);
      }
    const made = new Map([...rules].map(([key, of]) => [key, this.#bounded(of)]));
    this.#ofPods.set(wanted, made);
    return made;
  }

  #bounded(rules: readonly PodRule[]): PodRules {
    const parts: RulePart[] = [];
    const refused: RefusedRule[] = [];
    let [count, chars] = [0, 0];
    for (const rule of rules) {
      const acls = this.#aclsOf(rule);
      if ("reason" in acls) {
        refused.push(acls);
        continue;
      }
      const size = acls.reduce((sum, acl) => sum + Object.values(acl).join().length, 0);
      if (count + acls.length > maxAcls || chars + size > maxChars) {
        const reason = `a pod's endpoint holds ${maxAcls} ACLs of ${maxChars} characters, and this one would be too much`;
        refused.push({ id: rule.id, reason });
        continue;
      }
      [count, chars] = [count + acls.length, chars + size];
      parts.push({ id: rule.id, acls });
    }
    return { parts, refused };
  }

  #aclsOf(rule: PodRule): readonly Acl[] | RefusedRule {
    const acls = this.#ofRules.get(rule) ?? aclsOf(rule);
    this.#ofRules.set(rule, acls);
    return acls;
  }
}

/**
 * What each endpoint has, whatever the rules are. With a first ACL HNS refuses all that none allows, so that what is
 * open is said as well as what is closed.
 * @param isolation absent: open in both directions
 * @param own the pod's addresses: by way of a service it may reach itself
 * @param node the addresses by which the node reaches its pods
 */
export function standingAcls(
  isolation: Pick<Isolation, "directions"> | undefined,
  own: readonly Ip[],
  node: readonly Ip[],
): readonly Acl[] {
  return directions.flatMap((direction): Acl[] => {
    const common = { Direction: aclDirection[direction], RuleType: "Switch" } as const;
    // Without it the node's own firewall would judge the pod's packets as well, once there is any ACL.
    const host: Acl = { ...common, Id: aclId("host"), Action: "Allow", RuleType: "Host" };
    if (isolation?.directions.includes(direction) !== true)
      return [host, { ...common, Id: aclId("open"), Action: "Allow", Priority: priorities.rest }];
    const exempt = direction === "ingress" ? [...node, ...own] : own;
    const RemoteAddresses = exempt.map((ip) => formatCidr(hostBlock(ip))).join();
    return [
      host,
      ...(RemoteAddresses === ""
        ? []
        : [{ ...common, Id: aclId("exempt"), Action: "Allow", Priority: priorities.exempt, RemoteAddresses } as const]),
      { ...common, Id: aclId("isolated"), Action: "Block", Priority: priorities.rest },
    ];
  });
}
