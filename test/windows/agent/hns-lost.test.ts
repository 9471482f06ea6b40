import { expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { WindowsNode } from "./windows-node.ts";

describeWine("an HNS of which every look hangs", (wine) => {
  test("peers 10: makes the agent end, hung threads or not, so that its supervisor starts it anew", async () => {
    await using node = await WindowsNode.make(wine.prefix);
    const agent = await node.start({}, { hnsTimeoutMs: 1_000 });
    using _ = node.stubs.hns.fault({ call: "HcnOpenEndpoint", holdMs: "until released" });
    let left: number | undefined;
    void agent.ended.then(() => {
      left = 0;
    });
    const conf = { delTimeoutMs: 500 };
    // Each thread that hangs is given up after its second, and a new one takes the next call.
    for (let round = 0; left === undefined && round < 30; round++) {
      const ids = Array.from({ length: limits.hcnThreads }, (_, i) => `p${round}-${i}`);
      for (const { t } of await Promise.all(ids.map((id) => node.cni("DEL", id, { conf })))) expect(t).toBe("ok");
      await Bun.sleep(600);
    }
    const { status, stderr } = await agent.ended;
    expect(status).toBe(1);
    expect(stderr).toContain("Cannot call HNS any longer");
  });
});
