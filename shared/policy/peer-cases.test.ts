import { describe, expect, test } from "vitest";
import {
  bare,
  block,
  egress,
  ingress,
  ns,
  type PolicyCase,
  PolicyWorld,
  pod,
  selecting,
  toA,
} from "../../test/fakes/policy-world.ts";

/** Selectors, blocks of addresses, and pods that are not like others: where policies are easily misread. */
const cases: readonly PolicyCase[] = [
  {
    name: "a podSelector alone is of the policy's namespace",
    policies: [["x", ingress({ from: [pod("a")] })]],
    allowed: ["x/a -> x/b:80"],
    denied: ["y/a -> x/b:80", "x/c -> x/b:80"],
  },
  {
    name: "a namespaceSelector alone is all pods there; an empty one all namespaces",
    policies: [
      ["x", ingress({ from: [ns("y")] })],
      ["z", ingress({ from: [{ namespaceSelector: {} }] })],
    ],
    allowed: ["y/a -> x/a:80", "y/b -> x/a:80", "x/a -> z/a:80", "z/b -> z/a:80"],
    denied: ["z/a -> x/a:80", "x/b -> x/a:80"],
  },
  {
    name: "both selectors of one peer must match; of two peers one is enough",
    policies: [
      ["x", ingress({ from: [{ ...ns("y"), ...pod("a") }] })],
      ["z", ingress({ from: [ns("y"), pod("a")] })],
    ],
    allowed: ["y/a -> x/a:80", "y/b -> z/b:80", "z/a -> z/b:80"],
    denied: ["y/b -> x/a:80", "z/a -> x/a:80", "z/c -> z/b:80", "x/a -> z/b:80"],
  },
  {
    name: "an empty podSelector as peer is the own namespace, not the world",
    policies: [["x", ingress({ from: [{ podSelector: {} }] })]],
    allowed: ["x/b -> x/a:80"],
    denied: ["y/a -> x/a:80", "1.2.3.4 -> x/a:80"],
  },
  {
    name: "an empty namespaceSelector as peer is all pods, not nodes or the world",
    policies: [["x", ingress({ from: [{ namespaceSelector: {} }] })]],
    allowed: ["y/a -> x/a:80"],
    denied: ["@n-b -> x/a:80", "1.2.3.4 -> x/a:80"],
  },
  {
    name: "In, NotIn, Exists and DoesNotExist; the negative ones also without the key",
    policies: [
      ["x", ingress({ from: [selecting("pod", "In", "a", "b")] })],
      ["y", ingress({ from: [selecting("pod", "NotIn", "a")] })],
      ["z", ingress({ from: [selecting("pod", "Exists")] }, { from: [selecting("constructor", "Exists")] })],
      ["w", ingress({ from: [selecting("pod", "DoesNotExist")] })],
    ],
    pods: { "y/bare": bare("10.9.0.1"), "z/bare": bare("10.9.0.2"), "w/bare": bare("10.9.0.3"), "w/a": {} },
    allowed: ["x/b -> x/c:80", "y/b -> y/a:80", "y/bare -> y/a:80", "z/a -> z/b:80", "w/bare -> w/a:80"],
    denied: ["x/c -> x/a:80", "y/a -> y/b:80", "z/bare -> z/a:80", "w/a -> w/bare:80"],
  },
  {
    name: "kubernetes.io/metadata.name selects a namespace",
    policies: [
      ["x", ingress({ from: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "y" } } }] })],
    ],
    allowed: ["y/a -> x/a:80"],
    denied: ["z/a -> x/a:80"],
  },
  {
    name: "labels count as they are now, of targets, peers and namespaces",
    policies: [
      ["x", toA(ingress())],
      ["y", ingress({ from: [ns("x")] })],
    ],
    pods: { "x/a": { labels: { pod: "other" } }, "x/b": { labels: { pod: "a" } } },
    labels: { x: { ns: "was-x" }, z: { ns: "x" } },
    allowed: ["y/a -> x/a:80", "z/a -> y/a:80"],
    denied: ["y/a -> x/b:80", "x/a -> y/a:80"],
  },
  {
    name: "a selector that does not parse matches nobody as peer, and isolates everybody as target",
    policies: [
      [
        "x",
        ingress({ from: [selecting("pod", "Like", "a")] }, { from: [selecting("pod", "In")] }, { from: [pod("b")] }),
      ],
      ["y", { ...ingress({}), podSelector: { matchLabels: { pod: "not a label!" } } }],
      ["z", ingress({ from: [{ namespaceSelector: { matchExpressions: [{ operator: "Exists" }] } }] })],
    ],
    allowed: ["x/b -> x/a:80", "x/b -> x/c:80"],
    denied: ["x/a -> x/b:80", "y/a -> x/a:80", "x/a -> y/a:80", "y/b -> y/c:80", "x/a -> z/a:80"],
  },
  {
    name: "a block covers the pods in it",
    policies: [["x", egress({ to: [block("10.0.2.1/32")] })]],
    allowed: ["x/a -> y/a:80"],
    denied: ["x/a -> y/b:80", "x/a -> x/b:80"],
  },
  {
    name: "a block covers the nodes in it",
    policies: [["x", toA(ingress({ from: [block("192.168.0.0/24")] }))]],
    allowed: ["@n-b -> x/a:80"],
    denied: ["x/b -> x/a:80"],
  },
  {
    name: "host bits of a block are masked",
    policies: [["x", egress({ to: [block("10.1.2.3/8", "10.0.2.3/24")] })]],
    allowed: ["x/a -> z/a:80"],
    denied: ["x/a -> y/a:80", "x/a -> 11.0.0.1:80"],
  },
  {
    name: "an exception only takes from its own block",
    policies: [
      ["x", toA(egress({ to: [block("10.0.0.0/16", "10.0.2.0/24")] }))],
      ["x", toA(egress({ to: [ns("y"), block("1.2.3.0/24")] }))],
      ["x", { ...egress({ to: [block("10.0.0.0/16", "10.0.2.0/24")] }), podSelector: { matchLabels: { pod: "b" } } }],
    ],
    allowed: ["x/a -> y/a:80", "x/a -> z/a:80", "x/b -> z/a:80"],
    denied: ["x/b -> y/a:80", "x/a -> 1.2.4.1:80"],
  },
  {
    name: "an exception of the whole block leaves nothing, and isolates",
    policies: [["x", egress({ to: [block("10.0.0.0/16", "10.0.0.0/16")] })]],
    denied: ["x/a -> y/a:80", "x/a -> 1.2.3.4:80"],
  },
  {
    name: "0.0.0.0/0 is IPv4 only, and isolation is of both families",
    policies: [
      ["x", ingress({ from: [block("0.0.0.0/0")] })],
      ["y", ingress({ from: [block("0.0.0.0/0"), block("::/0")] })],
    ],
    allowed: ["1.2.3.4 -> x/a:80", "fd00::9 -> y/a:80"],
    denied: ["fd00::9 -> x/a:80"],
  },
  {
    name: "a block of IPv4-mapped addresses is the IPv4 block; one wider than that is none",
    policies: [
      ["x", ingress({ from: [block("::ffff:1.2.3.4/120")] })],
      ["y", ingress({ from: [block("::ffff:1.2.3.4/90")] })],
    ],
    allowed: ["1.2.3.9 -> x/a:80"],
    denied: ["1.2.4.9 -> x/a:80", "1.2.3.4 -> y/a:80", "fd00::9 -> x/a:80"],
  },
  {
    name: "addresses are those on the wire: of the endpoint and of whoever sends last",
    policies: [
      ["x", egress({ to: [block("10.96.0.0/12")] })],
      ["y", ingress({ from: [block("1.2.3.4/32")] })],
    ],
    allowed: ["1.2.3.4 -> y/a:80"],
    denied: ["x/a -> y/a:80", "@n-b -> y/a:80"],
  },
  {
    name: "a pod's own node reaches it, as do others on that node's network; other nodes are outside",
    policies: [["x", ingress()]],
    pods: { "y/host": { labels: { pod: "h" }, spec: { hostNetwork: true, nodeName: "n-a" }, ips: ["192.168.0.1"] } },
    allowed: ["@n-a -> x/a:80", "y/host -> x/a:80"],
    denied: ["@n-b -> x/a:80", "y/host -> x/b:80"],
  },
  {
    name: "a pod on the host's network is neither target nor peer, but has its node's address",
    policies: [
      ["x", { podSelector: {}, policyTypes: ["Ingress", "Egress"] }],
      ["y", toA(ingress({ from: [ns("x")] }, { from: [block("192.168.0.9/32")] }))],
    ],
    pods: {
      "x/host": { labels: {}, spec: { hostNetwork: true, nodeName: "n-b" }, ips: ["192.168.0.2"] },
      "z/host": { labels: {}, spec: { hostNetwork: true, nodeName: "n-z" }, ips: ["192.168.0.9"] },
    },
    allowed: ["y/a -> x/host:80", "x/host -> z/a:80", "z/host -> y/a:80"],
    denied: ["x/host -> y/a:80"],
  },
  {
    name: "a finished pod is neither target nor peer, since its address may be another's",
    policies: [
      ["x", ingress({ from: [pod("b")] })],
      ["y", egress({ to: [{ namespaceSelector: {} }] })],
    ],
    pods: { "x/b": { phase: "Succeeded" }, "x/c": { phase: "Failed" } },
    allowed: ["z/a -> x/c:80", "y/a -> z/a:80"],
    denied: ["x/b -> x/a:80", "y/a -> x/c:80"],
  },
  {
    name: "a terminating pod is still target and peer",
    policies: [["x", ingress({ from: [pod("b")] })]],
    pods: {
      "x/b": { deletionTimestamp: "2026-01-01T00:00:00Z" },
      "x/c": { deletionTimestamp: "2026-01-01T00:00:00Z" },
    },
    allowed: ["x/b -> x/a:80", "x/b -> x/c:80"],
    denied: ["x/a -> x/c:80"],
  },
  {
    name: "a pod without an address is a target, and no peer; one without a node has no node's rights",
    policies: [
      ["x", ingress({ from: [ns("y")] })],
      ["z", egress()],
    ],
    pods: { "y/b": { ips: [] }, "z/b": { ips: [] }, "x/c": { spec: { nodeName: null } } },
    allowed: ["y/a -> x/a:80", "y/a -> x/c:80"],
    denied: ["y/b -> x/a:80", "z/b -> y/a:80", "z/a -> x/c:80", "1.2.3.4 -> x/c:80"],
  },
  {
    name: "a peer of a kind that is not known is nobody",
    policies: [["x", ingress({ from: [{ serviceAccountSelector: {} }] })]],
    denied: ["y/a -> x/a:80", "x/b -> x/a:80"],
  },
];

describe("whom the rules of policies mean", () => {
  test.each(cases)("$name", (each) => {
    const world = new PolicyWorld(each);
    const { allowed = [], denied = [] } = each;
    expect([...allowed, ...denied].filter((question) => world.ask(question).allowed)).toEqual(allowed);
  });
});
