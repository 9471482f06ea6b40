import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWine } from "../wine/describe-wine.ts";
import { WindowsNode } from "./windows-node.ts";

/** Plugins that run at a time, as a kubelet starts them. */
const clients = 8;
const pods = Array.from({ length: 100 }, (_, i) => `pod${i}`);

describeWine("a full node", (wine) => {
  let node: WindowsNode;
  beforeAll(async () => {
    node = await WindowsNode.make(wine.prefix);
    await node.start();
  });
  afterAll(() => node[Symbol.asyncDispose]());

  async function forEachPod(work: (id: string) => Promise<void>): Promise<void> {
    const left = [...pods];
    const client = async (): Promise<void> => {
      for (let id = left.shift(); id !== undefined; id = left.shift()) await work(id);
    };
    await Promise.all(Array.from({ length: clients }, client));
  }

  const ok = async (verb: "ADD" | "DEL", id: string, netns: string): Promise<void> => {
    expect(await node.cni(verb, id, { netns })).toMatchObject({ t: "ok" });
  };

  test(`gives ${pods.length} pods with two workload containers each their endpoints, and takes all of them back`, async () => {
    const namespaces = new Map(pods.map((id) => [id, node.stubs.hns.newNamespace()]));
    await forEachPod(async (id) => {
      await ok("ADD", id, namespaces.get(id) ?? "");
      await Promise.all(["a", "b"].map((name) => ok("ADD", `${id}-${name}`, `container:${id}`)));
    });
    expect(node.endpoints()).toHaveLength(pods.length);
    const inside = new Set(
      node.endpoints().map(({ HostComputeNamespace }) => String(HostComputeNamespace).toLowerCase()),
    );
    expect([...inside].sort()).toEqual([...namespaces.values()].sort());
    expect(await node.disagreements()).toEqual([]);
    expect(node.stubs.hns.count("HcnCreateEndpoint")).toBe(pods.length);

    await forEachPod(async (id) => {
      await ok("DEL", `${id}-a`, `container:${id}`);
      await ok("DEL", id, namespaces.get(id) ?? "");
      await ok("DEL", `${id}-b`, `container:${id}`);
    });
    expect([node.endpoints(), await node.disagreements()]).toEqual([[], []]);
    // Every string that was given has been freed; a listing may still have had one when the last DEL's call began.
    expect(Math.min(...node.stubs.hns.calls.slice(-4).map(({ strings }) => strings))).toBe(0);
  }, 300_000);
});
