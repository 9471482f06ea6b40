import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { ContainerdNode } from "./containerd-node.ts";

const crowd = 100;

describeWith("a crowd of containerd's pods", ["root", "containerd", "cni-plugins", "gcc", "busybox", "nft"], () => {
  let node: ContainerdNode;

  beforeAll(async () => {
    node = await ContainerdNode.start();
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  test("100 at once have addresses of their own, and nothing is left of them", async () => {
    const names = Array.from({ length: crowd }, (_, i) => `crowd-${i}`);
    const ids = await Promise.all(names.map((name) => node.cri.runPod(name)));
    await node.agrees();
    const addresses = (await Promise.all(ids.map((id) => node.cri.podStatus(id)))).map((status) => status.addresses);
    expect(new Set(addresses.flat()).size).toBe(2 * crowd);
    expect(addresses.every((both) => both.length === 2)).toBe(true);
    const { netns } = await node.cri.podStatus(ids[0] ?? "");
    const reached = await Promise.all(addresses.map(([first = ""]) => node.base.node.ping(netns, first)));
    expect(reached.filter((ok) => !ok)).toEqual([]);

    await Promise.all(ids.map((id) => node.cri.endPod(id)));
    expect([...(await node.cri.pods()).keys()]).toEqual([]);
    await node.agrees();
  }, 180_000);
});
