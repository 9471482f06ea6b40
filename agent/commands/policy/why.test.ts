import { describe, expect, test } from "vitest";
import { block, egress, ingress, ns, PolicyWorld, pod, ports, toA } from "../../../test/fakes/policy-world.ts";
import type { NamedEnd } from "./explain.ts";
import { whyOf, whyText } from "./why.ts";

const world = new PolicyWorld({
  policies: [
    ["x", ingress()],
    [
      "x",
      ingress(
        { from: [ns("z")], ...ports({ port: 81 }, { port: "web" }) },
        { from: [pod("a")], ...ports({ port: 9 }) },
      ),
    ],
    ["y", toA(egress({ to: [block("10.0.0.0/8", "10.0.1.0/24")] }))],
    ["z", { ...ingress({ from: [{ serviceAccountSelector: {} }] }), podSelector: { matchLabels: { pod: "c" } } }],
  ],
});

function ask(text: string, anyPort = false) {
  const { source, destination, traffic } = world.question(text);
  const [from = "", to = ""] = text.replace(/:[^:]*$/, "").split(" -> ");
  const end = (name: string, endpoint: typeof source): NamedEnd => ({ name, endpoint });
  const asked = { source: end(from, source), destination: end(to, destination), ...(anyPort ? {} : { traffic }) };
  return whyOf(world.cluster, [asked], from, to);
}

describe("why, in a sentence", () => {
  test.each([
    ["y/b -> z/a:80", "y/b may reach z/a at TCP 80: no policy isolates either of them for it"],
    [
      "y/b -> x/a:80",
      "y/b may not reach x/a at TCP 80: x/policy-0 and x/policy-1 isolate x/a in what it receives, and no rule allows this",
    ],
    ["z/b -> x/a:80", "z/b may reach x/a at TCP 80: x/policy-1 ingress[0] allows what x/a receives"],
    [
      "y/a -> x/a:80",
      "y/a may not reach x/a at TCP 80: y/policy-2 isolates y/a in what it sends, and no rule allows this; x/policy-0 and x/policy-1 isolate x/a in what it receives, and no rule allows this",
    ],
    ["y/a -> 10.9.9.9:53/UDP", "y/a may reach 10.9.9.9 at UDP 53: y/policy-2 egress[0] allows what y/a sends"],
    ["@n-a -> x/a:80", "@n-a may reach x/a at TCP 80: the node of x/a always reaches it"],
    ["x/b -> x/b:80", "x/b may reach x/b at TCP 80: what a pod sends to itself is never refused"],
    ["y/b -> 1.2.3.4:80", "y/b may reach 1.2.3.4 at TCP 80: no policy isolates y/b in what it sends"],
  ])("%s", (question, sentence) => {
    expect(ask(question).sentence).toBe(sentence);
  });
});

test("names the rules that come close: of another port, or of another peer", () => {
  expect(
    whyText(ask("z/b -> x/a:9")),
  ).toBe(`z/b may not reach x/a at TCP 9: x/policy-0 and x/policy-1 isolate x/a in what it receives, and no rule allows this

  sending:  no policy isolates z/b in what it sends
  receiving: x/policy-0 and x/policy-1 isolate x/a in what it receives, and no rule allows this
    isolated by x/policy-0, x/policy-1
    x/policy-1 ingress[0], from[0]: close, but another port: from all pods of namespaces with ns=z, at TCP 81 or TCP "web"
    x/policy-1 ingress[1], ports[0]: close, but another peer: from pods with pod=a of namespace x, at TCP 9
`);
});

test("without a port says at which ones, and of each why", () => {
  const why = ask("z/b -> x/a:1", true);
  expect(why).toMatchObject({ allowed: "some", sentence: "z/b may reach x/a at TCP 80-81, and at nothing else" });
  expect(why.cases.map(({ ports, explanation }) => [ports, explanation.allowed])).toEqual([
    ["TCP 80", true],
    ["TCP 81", true],
    ["TCP 1-8, 10-79, 82-65535; every UDP port; every SCTP port; ICMP and other protocols", false],
    ["TCP 9", false],
  ]);
  expect(ask("y/b -> z/a:1", true).sentence).toMatch(/^y\/b may reach z\/a at everything: /);
});

test("tells of parts of a policy that are not understood", () => {
  expect(whyText(ask("x/a -> z/c:80"))).toContain(
    "z/policy-3 has parts that are not understood, and allow nothing: spec.ingress[0].from[0]\n",
  );
});
