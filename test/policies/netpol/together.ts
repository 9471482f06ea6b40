import { block, egress, ingress, ns, pod, ports, toA } from "../../fakes/policy-world.ts";
import { everybody, type NetpolCase, noneFromXa, noneIntoXa, type Reached } from "./netpol-case.ts";

const xaToXb = (...list: object[]) => toA(egress({ to: [pod("b")], ...ports(...list.map((each) => ({ ...each }))) }));
/** The block of one address. */
const alone = (ip: string): string => `${ip}/${ip.includes(":") ? 128 : 32}`;
const xaOnlyTo = {
  xb: ["-.####### .-....... ..-......", "...-..... ....-.... .....-...", "......-.. .......-. ........-"],
  ya: ["-##.##### .-....... ..-......", "...-..... ....-.... .....-...", "......-.. .......-. ........-"],
} satisfies Record<string, Reached>;
const allBut = {
  xb: ["-#....... .-....... ..-......", "...-..... ....-.... .....-...", "......-.. .......-. ........-"],
} satisfies Record<string, Reached>;

/** Both directions, several policies, blocks of addresses. */
export const together: readonly NetpolCase[] = [
  {
    name: "ingress and egress in one policy",
    steps: [
      {
        policies: [
          [
            "x",
            {
              podSelector: { matchLabels: { pod: "a" } },
              ingress: [{ from: [ns("x"), ns("y")] }],
              egress: [ports({ port: 80 })],
              policyTypes: ["Ingress", "Egress"],
            },
          ],
        ],
        looks: [
          {
            port: 80,
            reached: [
              "-........ .-....... ..-......",
              "...-..... ....-.... .....-...",
              "#.....-.. #......-. #.......-",
            ],
          },
          {
            port: 81,
            reached: [
              "-######## .-....... ..-......",
              "...-..... ....-.... .....-...",
              "#.....-.. #......-. #.......-",
            ],
          },
        ],
      },
    ],
  },
  {
    name: "egress is denied at the client although the server allows it",
    steps: [
      {
        policies: [
          ["x", toA(egress({ to: [{ ...ns("y"), ...pod("a") }] }))],
          ["y", toA(ingress({ from: [{ ...ns("x"), ...pod("a") }] }))],
          ["y", { ...ingress({ from: [{ ...ns("x"), ...pod("a") }] }), podSelector: { matchLabels: { pod: "b" } } }],
        ],
        looks: [
          {
            port: 80,
            reached: [
              "-##.##### .-.##.... ..-##....",
              "...-#.... ...#-.... ...##-...",
              "...##.-.. ...##..-. ...##...-",
            ],
          },
        ],
      },
    ],
  },
  {
    name: "egress to one pod of another namespace",
    steps: [
      {
        policies: [["x", toA(egress({ to: [{ ...ns("y"), ...pod("a") }] }))]],
        looks: [{ port: 80, reached: xaOnlyTo.ya }],
      },
    ],
  },
  {
    name: "ingress: allow-all takes precedence",
    steps: [
      {
        policies: [["x", toA(ingress({ from: [pod("b")] }))]],
        looks: [
          {
            port: 80,
            reached: [
              "-........ .-....... #.-......",
              "#..-..... #...-.... #....-...",
              "#.....-.. #......-. #.......-",
            ],
          },
        ],
      },
      {
        policies: [
          ["x", toA(ingress({ from: [pod("b")] }))],
          ["x", toA(ingress({}))],
        ],
        looks: [{ port: 80, reached: everybody }],
      },
    ],
  },
  {
    name: "egress: allow-all takes precedence",
    steps: [
      {
        policies: [["x", xaToXb({ port: 80 })]],
        looks: [
          { port: 80, reached: xaOnlyTo.xb },
          { port: 81, reached: noneFromXa },
        ],
      },
      {
        policies: [
          ["x", xaToXb({ port: 80 })],
          ["x", toA(egress({}))],
        ],
        looks: [
          { port: 80, reached: everybody },
          { port: 81, reached: everybody },
        ],
      },
    ],
  },
  {
    name: "ingress and egress are independent",
    steps: [
      {
        policies: [
          ["x", toA(ingress())],
          ["x", toA(egress({}))],
        ],
        looks: [{ port: 80, reached: noneIntoXa }],
      },
      {
        policies: [
          ["x", toA(ingress({}))],
          ["x", toA(egress())],
        ],
        looks: [{ port: 80, reached: noneFromXa }],
      },
    ],
  },
  {
    name: "egress to a block of one pod",
    steps: [
      {
        policies: (ipOf) => [["x", toA(egress({ to: [block(alone(ipOf("y/a")))] }))]],
        looks: [{ port: 80, reached: xaOnlyTo.ya }],
      },
    ],
  },
  {
    name: "egress to a block except one pod",
    steps: [
      {
        // With host bits, as the suite makes it out of a pod's address.
        policies: (ipOf) => [["x", toA(egress({ to: [block(`${ipOf("x/a")}/4`, alone(ipOf("x/b")))] }))]],
        looks: [{ port: 80, reached: allBut.xb }],
      },
    ],
  },
  {
    name: "an address that one block excepts and another has",
    steps: [
      {
        policies: (ipOf) => [["x", toA(egress({ to: [block(`${ipOf("x/a")}/4`, alone(ipOf("x/b")))] }))]],
        looks: [{ port: 80, reached: allBut.xb }],
      },
      {
        policies: (ipOf) => [
          ["x", toA(egress({ to: [block(`${ipOf("x/a")}/4`, alone(ipOf("x/b")))] }))],
          ["x", toA(egress({ to: [block(alone(ipOf("x/b")))] }))],
        ],
        looks: [{ port: 80, reached: everybody }],
      },
    ],
  },
];
