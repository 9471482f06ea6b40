import { describe, expect, test } from "vitest";
import type { ApiObject } from "../../shared/kubernetes/mod.ts";
import { formatCidr } from "../../shared/net/ip.ts";
import { readPolicy } from "../../shared/policy/mod.ts";
import { type ComputedRule, computePolicy } from "./computed-policy.ts";
import { textOf } from "./group-selector.ts";

const short = (rule: ComputedRule): unknown => {
  if (rule.t === "isolate") return `${rule.direction}: nothing`;
  const { direction, peer, ports } = rule;
  return [direction, ...peer.addressGroups, ...peer.blocks.map(({ cidr }) => formatCidr(cidr)), ports.length];
};

function rulesOf(spec: ApiObject): unknown[] {
  const source = readPolicy({ metadata: { namespace: "x", name: "p" }, spec: { podSelector: {}, ...spec } });
  if (source === undefined) throw new Error("no policy");
  const groups = new Map<string, { readonly name: string }>();
  const { policy, appliedTo, peers } = computePolicy(source, (selector) => {
    const name = textOf(selector);
    const group = groups.get(name) ?? { name };
    groups.set(name, group);
    return group;
  });
  expect(policy.appliedTo).toBe(appliedTo.name);
  const named = policy.rules.flatMap((rule) => (rule.t === "allow" ? rule.peer.addressGroups : []));
  expect([...peers].map(({ name }) => name)).toEqual(named);
  return policy.rules.map(short);
}

const both = { policyTypes: ["Ingress", "Egress"] };
const peer = { podSelector: { matchLabels: { app: "a" } } };

describe("a policy as agents get it", () => {
  test("isolates by a rule of its own in each direction without rules", () => {
    expect(rulesOf(both)).toEqual(["ingress: nothing", "egress: nothing"]);
    expect(rulesOf({ policyTypes: ["Egress"], ingress: [{}] })).toEqual(["egress: nothing"]);
  });

  test("names a group for each selector, and blocks as they are", () => {
    const from = [peer, { namespaceSelector: {} }, { ipBlock: { cidr: "10.1.2.3/8" } }, peer];
    expect(rulesOf({ policyTypes: ["Ingress"], ingress: [{ from, ports: [{ port: 80 }] }] })).toEqual([
      ["ingress", "namespace=x And podSelector=app=a", "namespaceSelector=", "10.0.0.0/8", 1],
    ]);
  });

  test("has anybody as two blocks, and where ports of egress have names all pods as well", () => {
    const ports = [{ port: "web" }];
    const anywhere = ["0.0.0.0/0", "::/0"];
    expect(rulesOf({ ...both, ingress: [{ ports }], egress: [{ ports: [{ port: 80 }] }, { ports }] })).toEqual([
      ["ingress", ...anywhere, 1],
      ["egress", ...anywhere, 1],
      ["egress", "namespaceSelector=", ...anywhere, 1],
    ]);
  });

  test("loses rules of which nothing was understood, and stays isolated", () => {
    const bad = [{ from: [{ ipBlock: { cidr: "nonsense" } }] }, { ports: [{ protocol: "QUIC" }] }];
    expect(rulesOf({ policyTypes: ["Ingress"], ingress: bad })).toEqual(["ingress: nothing"]);
    expect(rulesOf({ policyTypes: ["Ingress"], ingress: [...bad, { from: [peer] }] })).toEqual([
      ["ingress", "namespace=x And podSelector=app=a", 0],
    ]);
  });
});
