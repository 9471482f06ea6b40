import { afterAll, beforeAll, expect, test } from "vitest";
import { netpolCases } from "../policies/netpol/cases.ts";
import { nine } from "../policies/netpol/netpol-case.ts";
import { NetpolPods } from "../policies/netpol/on-pods.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { BridgeNodes } from "./policed-bridges.ts";

for (const [title, nodeNames, ways] of [
  [
    "one node",
    ["n1"],
    [
      [4, "pod"],
      [6, "service"],
    ],
  ],
  [
    "two nodes",
    ["n1", "n2"],
    [
      [4, "service"],
      [6, "pod"],
    ],
  ],
] as const)
  describeWith(`the suite of network policies on kernel bridges: ${title}`, ["linux", "root", "nft"], () => {
    const stack = new AsyncDisposableStack();
    let pods: NetpolPods;

    beforeAll(async () => {
      const sandbox = stack.use(await NetworkSandbox.enter("pt-np-"));
      const { nodes } = stack.use(await BridgeNodes.start(sandbox, nodeNames));
      // The pods of one namespace are on different nodes.
      const nodeNumber = (pod: string): number => nine.indexOf(pod) % nodeNames.length;
      pods = stack.use(
        await NetpolPods.attach(sandbox, nodes, {
          nodeOf: (pod) => nodeNames[nodeNumber(pod)] ?? "",
          ipsOf: (pod) => [
            `10.${77 + nodeNumber(pod)}.0.${10 + nine.indexOf(pod)}`,
            `fd${77 + nodeNumber(pod)}::${10 + nine.indexOf(pod)}`,
          ],
        }),
      );
    });
    afterAll(() => stack.disposeAsync());

    test.each(netpolCases)("$name", async (each) => {
      for (const [family, by] of ways) expect(await pods.run(each, family, by), `IPv${family} by ${by}`).toEqual([]);
    });
  });
