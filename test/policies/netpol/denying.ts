import { egress, ingress, toA } from "../../fakes/policy-world.ts";
import { everybody, type NetpolCase, noneFromXa, noneIntoX, noneIntoXa } from "./netpol-case.ts";

const nothing = { podSelector: {}, policyTypes: ["Ingress", "Egress"] };

/** Policies that only take, and changes of policies. */
export const denying: readonly NetpolCase[] = [
  {
    name: "default-deny-ingress",
    steps: [{ policies: [["x", ingress()]], looks: [{ port: 80, reached: noneIntoX }] }],
  },
  {
    name: "default-deny-all",
    steps: [
      {
        policies: [["x", nothing]],
        looks: [
          {
            port: 80,
            reached: [
              "-######## #-####### ##-######",
              "###-..... ###.-.... ###..-...",
              "###...-.. ###....-. ###.....-",
            ],
          },
        ],
      },
    ],
  },
  {
    name: "ingress from pods of other namespaces is denied",
    steps: [
      {
        policies: [["x", ingress({ from: [{ podSelector: {} }] })]],
        looks: [
          {
            port: 80,
            reached: [
              "-........ .-....... ..-......",
              "###-..... ###.-.... ###..-...",
              "###...-.. ###....-. ###.....-",
            ],
          },
        ],
      },
    ],
  },
  {
    name: "egress is denied by podSelector",
    steps: [{ policies: [["x", toA(egress())]], looks: [{ port: 80, reached: noneFromXa }] }],
  },
  {
    name: "egress of a namespace is denied",
    steps: [
      {
        policies: [["x", egress()]],
        looks: [
          {
            port: 80,
            reached: [
              "-######## #-####### ##-######",
              "...-..... ....-.... .....-...",
              "......-.. .......-. ........-",
            ],
          },
        ],
      },
    ],
  },
  {
    name: "ingress to an updated pod is denied",
    steps: [
      {
        policies: [["x", { ...ingress(), podSelector: { matchLabels: { target: "isolated" } } }]],
        looks: [{ port: 80, reached: everybody }],
      },
      {
        policies: [["x", { ...ingress(), podSelector: { matchLabels: { target: "isolated" } } }]],
        labels: { "x/a": { target: "isolated" } },
        looks: [{ port: 80, reached: noneIntoXa }],
      },
    ],
  },
  {
    name: "an updated policy counts",
    steps: [
      {
        policies: [["x", ingress({})]],
        looks: [
          { port: 80, reached: everybody },
          { port: 81, reached: everybody },
        ],
      },
      {
        policies: [["x", ingress()]],
        looks: [
          { port: 80, reached: noneIntoX },
          { port: 81, reached: noneIntoX },
        ],
      },
    ],
  },
  {
    name: "deleted policies are enforced no more",
    steps: [
      { policies: [["x", ingress()]], looks: [{ port: 80, reached: noneIntoX }] },
      { policies: [], looks: [{ port: 80, reached: everybody }] },
    ],
  },
  {
    name: "allow-all",
    steps: [
      {
        policies: [["x", ingress({})]],
        looks: [
          { port: 80, reached: everybody },
          { port: 81, reached: everybody },
        ],
      },
    ],
  },
];
