import { describe, expect, test } from "vitest";
import {
  block,
  containers,
  egress,
  ingress,
  ns,
  type PolicyCase,
  PolicyWorld,
  ports,
  toA,
  webAt,
} from "../../test/fakes/policy-world.ts";

/** Isolation, ports and protocols: where policies are easily misread. */
const cases: readonly PolicyCase[] = [
  {
    name: "an empty podSelector selects all pods of the policy's namespace, never others",
    policies: [["x", ingress()]],
    allowed: ["x/a -> y/a:80"],
    denied: ["y/a -> x/a:80", "x/a -> x/b:80", "y/a -> x/c:80"],
  },
  {
    name: "without a policy everything is allowed",
    policies: [],
    allowed: ["x/a -> x/b:80", "y/a -> x/b:53/UDP", "x/a -> 1.2.3.4:80", "1.2.3.4 -> x/a:1/ICMP"],
  },
  {
    name: "no rules and an absent list deny alike",
    policies: [
      ["x", { podSelector: {}, ingress: [], policyTypes: ["Ingress"] }],
      ["y", { podSelector: {}, policyTypes: ["Ingress"] }],
      ["z", { podSelector: {}, ingress: null, policyTypes: ["Ingress"] }],
    ],
    denied: ["z/b -> x/a:80", "x/b -> y/a:80", "x/b -> z/a:80"],
  },
  {
    name: "an empty rule allows all families and protocols",
    policies: [["x", ingress({})]],
    allowed: ["y/a -> x/a:80", "fd00::9 -> x/a:53/UDP", "y/a -> x/a:9/SCTP", "1.2.3.4 -> x/a:0/ICMP"],
  },
  {
    name: "empty and absent peers are anybody, also outside",
    policies: [
      ["x", ingress({ from: [], ...ports({ port: 80 }) })],
      ["y", egress(ports({ port: 80 }))],
    ],
    allowed: ["1.2.3.4 -> x/a:80", "z/a -> x/a:80", "y/a -> 1.2.3.4:80"],
    denied: ["1.2.3.4 -> x/a:81", "y/a -> 1.2.3.4:81"],
  },
  {
    name: "no ports are all ports of all protocols",
    policies: [["x", ingress({ from: [ns("y")], ports: [] })]],
    allowed: ["y/a -> x/a:80", "y/a -> x/a:53/UDP", "y/a -> x/a:0/ICMP", "y/a -> x/a:0/GRE"],
    denied: ["z/a -> x/a:80"],
  },
  {
    name: "rules of a direction that policyTypes does not list count for nothing",
    policies: [["x", { ...ingress({ from: [ns("y")] }), egress: [{ to: [ns("y")] }] }]],
    allowed: ["x/a -> z/a:80", "x/a -> 1.2.3.4:80", "y/a -> x/a:80"],
    denied: ["z/a -> x/a:80"],
  },
  {
    name: "policyTypes Egress leaves ingress alone",
    policies: [["x", egress()]],
    allowed: ["y/a -> x/a:80"],
    denied: ["x/a -> y/a:80"],
  },
  {
    name: "no policyTypes and no egress rule isolate for ingress only; with one for both",
    policies: [
      ["x", { podSelector: {}, egress: [] }],
      ["y", { podSelector: {}, ingress: [{}], egress: [{ to: [ns("y")] }] }],
    ],
    allowed: ["x/a -> z/a:80", "z/a -> y/a:80"],
    denied: ["z/a -> x/a:80", "y/a -> z/a:80"],
  },
  {
    name: "a service is judged by the endpoint's pod and port",
    policies: [["x", egress({ to: [ns("y")], ...ports({ port: 8080 }) })]],
    pods: { "y/a": { spec: containers({ name: "web", containerPort: 8080 }) } },
    allowed: ["x/a -> y/a:8080"],
    denied: ["x/a -> y/a:80"],
  },
  {
    name: "a pod reaches itself, through its own service and by its own address",
    policies: [["x", { podSelector: {}, policyTypes: ["Ingress", "Egress"] }]],
    allowed: ["x/a -> x/a:80", "x/a -> x/a:53/UDP"],
    denied: ["x/a -> x/b:80"],
  },
  {
    name: "without a protocol it is TCP",
    policies: [["x", ingress(ports({ port: 80 }))]],
    allowed: ["y/a -> x/a:80"],
    denied: ["y/a -> x/a:80/UDP", "y/a -> x/a:80/SCTP"],
  },
  {
    name: "a protocol without a port is all its ports",
    policies: [["x", ingress(ports({ protocol: "UDP" }))]],
    allowed: ["y/a -> x/a:53/UDP", "y/a -> x/a:9999/UDP"],
    denied: ["y/a -> x/a:80"],
  },
  {
    name: "endPort is the last of a range; what is no range allows nothing",
    policies: [
      ["x", ingress(ports({ port: 80, endPort: 82 }, { port: 90, endPort: 90 }))],
      ["y", ingress(ports({ port: 82, endPort: 80 }, { port: "web", endPort: 90 }, { endPort: 90 }))],
    ],
    allowed: ["y/a -> x/a:80", "y/a -> x/a:82", "y/a -> x/a:90"],
    denied: ["y/a -> x/a:79", "y/a -> x/a:83", "y/a -> x/a:91", "x/a -> y/a:80", "x/a -> y/a:81"],
  },
  {
    name: "the name of a port is each destination's own number, in both directions",
    policies: [
      ["x", ingress(ports({ port: "web" }))],
      ["y", egress({ to: [ns("z")], ...ports({ port: "web" }) })],
    ],
    pods: { "x/b": webAt(8080), "z/b": webAt(8080) },
    allowed: ["z/a -> x/a:80", "z/a -> x/b:8080", "y/a -> z/a:80", "y/a -> z/b:8080"],
    denied: ["z/a -> x/a:8080", "z/a -> x/b:80", "y/a -> z/b:80", "y/a -> x/a:80"],
  },
  {
    name: "of ingress, it is the target's number, also for addresses that were written down",
    policies: [["x", ingress({ from: [block("1.2.3.0/24")], ...ports({ port: "web" }) })]],
    pods: { "x/b": webAt(8080) },
    allowed: ["1.2.3.4 -> x/a:80", "1.2.3.4 -> x/b:8080"],
    denied: ["1.2.3.4 -> x/b:80", "1.2.4.4 -> x/a:80"],
  },
  {
    name: "of egress, anybody's port has its name, but no address that was written down has one",
    policies: [
      ["x", egress(ports({ port: "web" }))],
      ["y", egress({ to: [block("0.0.0.0/0")], ...ports({ port: "web" }) })],
    ],
    allowed: ["x/a -> y/a:80", "x/a -> z/a:80"],
    denied: ["x/a -> 1.2.3.4:80", "y/a -> z/a:80", "y/a -> 1.2.3.4:80"],
  },
  {
    name: "a name that nobody has allows nothing, and leaves the other ports",
    policies: [["x", ingress(ports({ port: "db" }, { port: 81 }))]],
    allowed: ["y/a -> x/a:81"],
    denied: ["y/a -> x/a:80", "y/a -> x/a:5432"],
  },
  {
    name: "a name is of one protocol",
    policies: [["x", ingress(ports({ port: "web", protocol: "UDP" }))]],
    denied: ["y/a -> x/a:80/UDP", "y/a -> x/a:80"],
  },
  {
    name: "a sidecar's port has a name, an ordinary init container's has none",
    policies: [["x", ingress(ports({ port: "proxy" }, { port: "setup" }))]],
    pods: {
      "x/a": {
        spec: {
          initContainers: [
            { restartPolicy: "Always", ports: [{ name: "proxy", containerPort: 15001 }] },
            { ports: [{ name: "setup", containerPort: 15002 }] },
          ],
        },
      },
    },
    allowed: ["y/a -> x/a:15001"],
    denied: ["y/a -> x/a:15002"],
  },
  {
    name: "a protocol that is not known isolates, and is never another one",
    policies: [
      ["x", ingress(ports({ protocol: "SCTP", port: 80 }))],
      ["y", ingress(ports({ protocol: "QUIC", port: 80 }))],
    ],
    allowed: ["y/a -> x/a:80/SCTP"],
    denied: ["y/a -> x/a:80", "x/a -> y/a:80", "x/a -> y/a:80/QUIC"],
  },
  {
    name: "UDP of the same number opens no TCP",
    policies: [["x", ingress(ports({ protocol: "UDP", port: 80 }))]],
    allowed: ["y/a -> x/a:80/UDP"],
    denied: ["y/a -> x/a:80"],
  },
  {
    name: "ICMP reaches an isolated pod only by a rule without ports",
    policies: [
      ["x", ingress({ from: [ns("y")] }, ports({ port: 80 }))],
      ["y", ingress(ports({ protocol: "TCP" }))],
    ],
    allowed: ["y/a -> x/a:8/ICMP"],
    denied: ["z/a -> x/a:8/ICMP", "x/a -> y/a:8/ICMP"],
  },
  {
    name: "neighbour discovery and ARP are never filtered",
    policies: [["x", { podSelector: {}, policyTypes: ["Ingress", "Egress"] }]],
    allowed: ["y/a -> x/a:133/ICMPv6", "y/a -> x/a:137/ICMPv6", "x/a -> y/a:135/ICMPv6", "y/a -> x/a:0/ARP"],
    denied: ["y/a -> x/a:132/ICMPv6", "y/a -> x/a:138/ICMPv6", "y/a -> x/a:128/ICMPv6", "y/a -> x/a:135/ICMP"],
  },
  {
    name: "denied egress includes DNS",
    policies: [["x", egress({ to: [ns("y")] })]],
    allowed: ["x/a -> y/a:53/UDP"],
    denied: ["x/a -> z/a:53/UDP"],
  },
  {
    name: "several policies allow what any of them does",
    policies: [
      ["x", ingress()],
      ["x", ingress(ports({ port: 80 }))],
      ["x", toA(ingress(ports({ port: 81 })))],
      ["y", ingress()],
      ["y", ingress({})],
    ],
    allowed: ["y/a -> x/a:80", "y/a -> x/a:81", "y/a -> x/b:80", "x/a -> y/a:1234"],
    denied: ["y/a -> x/b:81"],
  },
  {
    name: "the source's egress and the destination's ingress must both allow",
    policies: [
      ["x", egress({ to: [ns("y")] })],
      ["z", ingress({ from: [ns("x")] })],
      ["y", ingress({ from: [ns("x")], ...ports({ port: 80 }) })],
    ],
    allowed: ["x/a -> y/a:80"],
    denied: ["x/a -> z/a:80", "x/a -> y/a:81"],
  },
];

describe("what the rules of policies allow", () => {
  test.each(cases)("$name", (each) => {
    const world = new PolicyWorld(each);
    const { allowed = [], denied = [] } = each;
    expect([...allowed, ...denied].filter((question) => world.ask(question).allowed)).toEqual(allowed);
  });
});
