import { egress, ingress, ns, pod, ports, toA } from "../../fakes/policy-world.ts";
import { everybody, type NetpolCase, noneFromXa, noneIntoX, noneIntoXa, type Reached } from "./netpol-case.ts";

const yIntoXa: Reached = [
  "-........ #-....... #.-......",
  "...-..... ....-.... .....-...",
  "#.....-.. #......-. #.......-",
];
const yaIntoXa: Reached = [
  "-........ #-....... #.-......",
  "...-..... #...-.... #....-...",
  "#.....-.. #......-. #.......-",
];

const fromY = (...list: object[]) => toA(ingress({ from: [ns("y")], ...ports(...list.map((each) => ({ ...each }))) }));

/** Ports by number, by name, of protocols. */
export const byPort: readonly NetpolCase[] = [
  {
    name: "by port",
    steps: [
      {
        policies: [["x", fromY({ port: 81 })]],
        looks: [
          { port: 81, reached: yIntoXa },
          { port: 80, reached: noneIntoXa },
        ],
      },
    ],
  },
  {
    name: "stacked policies open 81, then 80",
    steps: [
      {
        policies: [["x", fromY({ port: 81 })]],
        looks: [
          { port: 80, reached: noneIntoXa },
          { port: 81, reached: yIntoXa },
        ],
      },
      {
        policies: [
          ["x", fromY({ port: 81 })],
          ["x", fromY({ port: 80 })],
        ],
        looks: [
          { port: 80, reached: yIntoXa },
          { port: 81, reached: yIntoXa },
        ],
      },
    ],
  },
  {
    name: "ingress on one named port",
    steps: [
      {
        policies: [["x", ingress(ports({ port: "serve-81-tcp" }))]],
        looks: [
          { port: 81, reached: everybody },
          { port: 80, reached: noneIntoX },
        ],
      },
    ],
  },
  {
    name: "ingress from a namespace on one named port",
    steps: [
      {
        policies: [["x", fromY({ port: "serve-80-tcp" })]],
        looks: [
          { port: 80, reached: yIntoXa },
          { port: 81, reached: noneIntoXa },
        ],
      },
    ],
  },
  {
    name: "egress on one named port",
    steps: [
      {
        policies: [["x", toA(egress(ports({ port: "serve-80-tcp" })))]],
        looks: [
          { port: 80, reached: everybody },
          { port: 81, reached: noneFromXa },
        ],
      },
    ],
  },
  {
    name: "any port of one protocol",
    steps: [
      {
        policies: [["x", toA(ingress({ from: [ns("y")], ...ports({ protocol: "TCP" }) }))]],
        looks: [
          { port: 80, reached: yIntoXa },
          { port: 81, reached: yIntoXa },
          { port: 80, protocol: "UDP", reached: noneIntoXa },
        ],
      },
    ],
  },
  {
    name: "a rule for UDP does not open TCP",
    steps: [
      {
        policies: [["x", toA(ingress(ports({ protocol: "UDP", port: 81 })))]],
        looks: [
          { port: 81, reached: noneIntoXa },
          { port: 81, protocol: "UDP", reached: everybody },
        ],
      },
    ],
  },
  {
    name: "a rule for SCTP does not open TCP",
    steps: [
      {
        policies: [["x", toA(ingress(ports({ protocol: "SCTP", port: 80 })))]],
        looks: [{ port: 80, reached: noneIntoXa }],
      },
    ],
  },
  {
    name: "a rule for SCTP isolates",
    steps: [
      {
        policies: [["x", toA(ingress(ports({ protocol: "SCTP", port: 80 })))]],
        looks: [
          { port: 81, reached: noneIntoXa },
          { port: 81, protocol: "UDP", reached: noneIntoXa },
        ],
      },
    ],
  },
  ...(["UDP", "SCTP"] as const).flatMap((protocol): NetpolCase[] => [
    {
      name: `${protocol}: default-deny-ingress`,
      steps: [{ policies: [["x", ingress()]], looks: [{ port: 80, protocol, reached: noneIntoX }] }],
    },
    {
      name: `${protocol}: by port`,
      steps: [
        {
          policies: [["x", fromY({ protocol, port: 81 })]],
          looks: [
            { port: 81, protocol, reached: yIntoXa },
            { port: 80, protocol, reached: noneIntoXa },
          ],
        },
      ],
    },
    {
      name: `${protocol}: from one pod of another namespace`,
      steps: [
        {
          policies: [["x", toA(ingress({ from: [{ ...ns("y"), ...pod("a") }], ...ports({ protocol, port: 80 }) }))]],
          looks: [{ port: 80, protocol, reached: yaIntoXa }],
        },
      ],
    },
  ]),
];
