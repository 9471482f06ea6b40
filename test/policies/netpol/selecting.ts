import { ingress, ns, pod, selecting as podsBy, toA } from "../../fakes/policy-world.ts";
import { everybody, type NetpolCase, noneIntoXa, type Reached } from "./netpol-case.ts";

const namespacesBy = (key: string, operator: string, ...values: string[]) => ({
  namespaceSelector: { matchExpressions: [{ key, operator, values }] },
});
const fromOutsideOfX = namespacesBy("ns", "NotIn", "x");
const metadataName = "kubernetes.io/metadata.name";

const xbIntoXa: Reached = [
  "-........ .-....... #.-......",
  "#..-..... #...-.... #....-...",
  "#.....-.. #......-. #.......-",
];
const yIntoXa: Reached = [
  "-........ #-....... #.-......",
  "...-..... ....-.... .....-...",
  "#.....-.. #......-. #.......-",
];

/** One policy for x/a, looked at by port 80. */
const ofXa = (name: string, reached: Reached, ...from: object[]): NetpolCase => ({
  name,
  steps: [{ policies: [["x", toA(ingress({ from }))]], looks: [{ port: 80, reached }] }],
});

/** Whom selectors mean. */
export const selecting: readonly NetpolCase[] = [
  ofXa("from pods of the own namespace by podSelector", xbIntoXa, pod("b")),
  {
    name: "ingress for one target above deny-all",
    steps: [
      {
        policies: [
          ["x", ingress()],
          ["x", toA(ingress({ from: [pod("b")] }))],
        ],
        looks: [
          {
            port: 80,
            reached: [
              "-##...... .-#...... ##-......",
              "###-..... ###.-.... ###..-...",
              "###...-.. ###....-. ###.....-",
            ],
          },
        ],
      },
    ],
  },
  ofXa("from pods of all namespaces", everybody, { namespaceSelector: {} }),
  ofXa("from another namespace alone", yIntoXa, ns("y")),
  ofXa("by podSelector with matchExpressions", xbIntoXa, podsBy("pod", "In", "b")),
  ofXa("by namespaceSelector with matchExpressions", yIntoXa, namespacesBy("ns", "In", "y")),
  ofXa(
    "by podSelector or namespaceSelector",
    ["-........ .-....... #.-......", "...-..... ....-.... .....-...", "......-.. .......-. ........-"],
    fromOutsideOfX,
    pod("b"),
  ),
  ofXa(
    "by podSelector and namespaceSelector",
    ["-........ #-....... #.-......", "#..-..... ....-.... #....-...", "#.....-.. .......-. #.......-"],
    { ...fromOutsideOfX, ...pod("b") },
  ),
  ofXa(
    "by several podSelectors and namespaceSelectors",
    ["-........ #-....... #.-......", "#..-..... ....-.... .....-...", "#.....-.. .......-. ........-"],
    { ...fromOutsideOfX, ...podsBy("pod", "In", "b", "c") },
  ),
  ofXa(
    "by any of several podSelectors",
    ["-........ .-....... ..-......", "#..-..... #...-.... #....-...", "#.....-.. #......-. #.......-"],
    pod("b"),
    pod("c"),
  ),
  ofXa(
    "from one pod of another namespace",
    ["-........ #-....... #.-......", "...-..... #...-.... #....-...", "#.....-.. #......-. #.......-"],
    { ...ns("y"), ...pod("a") },
  ),
  ofXa("by the label that every namespace has, with matchLabels", yIntoXa, {
    namespaceSelector: { matchLabels: { [metadataName]: "y" } },
  }),
  {
    name: "by the label that every namespace has, with NotIn, for egress",
    steps: [
      {
        policies: [
          [
            "x",
            {
              podSelector: { matchLabels: { pod: "a" } },
              egress: [{ to: [namespacesBy(metadataName, "NotIn", "y")] }],
              policyTypes: ["Egress"],
            },
          ],
        ],
        looks: [
          {
            port: 80,
            reached: [
              "-..###... .-....... ..-......",
              "...-..... ....-.... .....-...",
              "......-.. .......-. ........-",
            ],
          },
        ],
      },
    ],
  },
  {
    name: "from an updated namespace",
    steps: [
      {
        policies: [["x", toA(ingress({ from: [{ namespaceSelector: { matchLabels: { ns2: "updated" } } }] }))]],
        looks: [{ port: 80, reached: noneIntoXa }],
      },
      {
        policies: [["x", toA(ingress({ from: [{ namespaceSelector: { matchLabels: { ns2: "updated" } } }] }))]],
        labels: { y: { ns2: "updated" } },
        looks: [{ port: 80, reached: yIntoXa }],
      },
    ],
  },
  {
    name: "from an updated pod",
    steps: [
      {
        policies: [["x", toA(ingress({ from: [{ podSelector: { matchLabels: { pod2: "updated" } } }] }))]],
        looks: [{ port: 80, reached: noneIntoXa }],
      },
      {
        policies: [["x", toA(ingress({ from: [{ podSelector: { matchLabels: { pod2: "updated" } } }] }))]],
        labels: { "x/b": { pod2: "updated" } },
        looks: [{ port: 80, reached: xbIntoXa }],
      },
    ],
  },
];
