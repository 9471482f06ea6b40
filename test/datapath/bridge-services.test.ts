import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

import { addresses, endpoint, ServicedNode, service } from "./serviced-node.ts";

const vips = { 4: "10.96.0.1", 6: "fd96::1" } as const;

describeWith("services of a kernel bridge", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let sandbox: NetworkSandbox;
  let node: ServicedNode;

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-sv-"));
    node = stack.use(await ServicedNode.start(sandbox));
  });
  afterAll(() => stack.disposeAsync());

  describe.each([4, 6] as const)("IPv%s", (family) => {
    const vip = vips[family];
    const own = (place: keyof typeof addresses): string => addresses[place][family];

    test("a cluster IP from pods, the node and outside", async () => {
      const targets = { a: own("a"), b: own("b"), node: own("node"), remote: own("remote"), other: own("other") };
      const found: Record<string, string> = {};
      for (const [name, address] of Object.entries(targets)) {
        expect(await node.apply(service(vip, [endpoint(address)]))).toEqual([]);
        // A pod that reaches itself is not led back yet.
        for (const from of ["a", "node", "outside"] as const)
          if (from !== "a" || name !== "a") found[`${from} to ${name}`] = await node.fate(from, vip, 80);
      }
      const [pod, gateway, self, stranger] = [own("a"), own("gateway"), own("node"), own("outside")];
      expect(found).toEqual({
        "a to b": `b sees ${pod}`,
        "a to node": `node sees ${pod}`,
        "a to other": `other sees ${pod}`,
        "a to remote": `other sees ${pod}`,
        "node to a": `a sees ${gateway}`,
        "node to b": `b sees ${gateway}`,
        "node to node": `node sees ${self}`,
        "node to other": `other sees ${self}`,
        "node to remote": `other sees ${self}`,
        "outside to a": `a sees ${gateway}`,
        "outside to b": `b sees ${gateway}`,
        "outside to node": `node sees ${stranger}`,
        "outside to other": `other sees ${self}`,
        "outside to remote": `other sees ${self}`,
      });
    });
  });
});
