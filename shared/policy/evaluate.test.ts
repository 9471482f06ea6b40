import { describe, expect, test } from "vitest";
import { egress, ingress, ns, PolicyWorld, pod, ports } from "../../test/fakes/policy-world.ts";
import type { NetworkPolicy, Side } from "./mod.ts";

const short = (side: Side): unknown => {
  const names = (policies: readonly NetworkPolicy[]): string[] => policies.map(({ name }) => name);
  if (side.t === "exempt") return side.because;
  if (side.t === "open") return side.t;
  const isolatedBy = names(side.isolatedBy);
  if (side.t === "denied") return { isolatedBy };
  return { isolatedBy, by: side.by.map(({ policy, ...match }) => ({ policy: policy.name, ...match })) };
};

describe("a verdict", () => {
  const world = new PolicyWorld({
    policies: [
      ["x", ingress()],
      ["x", ingress({}, { from: [ns("z")] }, { from: [ns("z"), pod("a")], ...ports({ port: 81 }, { port: "web" }) })],
      ["x", { ...ingress({}), podSelector: { matchLabels: { pod: "c" } } }],
      ["y", egress()],
    ],
  });
  const why = (question: string): unknown => {
    const { allowed, egress, ingress } = world.ask(question);
    return { allowed, egress: short(egress), ingress: short(ingress) };
  };

  test("names every policy that isolates, and every rule that allows, by its first peer and port that match", () => {
    expect(why("x/a -> x/b:80")).toEqual({
      allowed: true,
      egress: "open",
      ingress: {
        isolatedBy: ["policy-0", "policy-1"],
        by: [
          { policy: "policy-1", rule: 0 },
          { policy: "policy-1", rule: 2, peer: 1, port: 1 },
        ],
      },
    });
    expect(why("z/a -> x/b:9/UDP")).toMatchObject({
      ingress: { by: [{ rule: 0 }, { policy: "policy-1", rule: 1, peer: 0 }] },
    });
  });

  test("says for each end what holds there", () => {
    const deniedByY = { isolatedBy: ["policy-3"] };
    expect(why("y/a -> z/a:80")).toEqual({ allowed: false, egress: deniedByY, ingress: "open" });
    expect(why("y/a -> 1.2.3.4:80")).toEqual({ allowed: false, egress: deniedByY, ingress: "no subject" });
    expect(why("y/a -> y/a:80")).toEqual({ allowed: true, egress: "itself", ingress: "itself" });
    expect(why("@n-c -> x/c:80")).toEqual({ allowed: true, egress: "no subject", ingress: "own node" });
    expect(why("y/a -> x/a:135/ICMPv6")).toMatchObject({ egress: "neighbour discovery" });
  });
});
