import { describe, expect, test, vi } from "vitest";
import { PluginNode, podResult, refused } from "../test/fakes/plugin-node.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

const prevResult = JSON.parse(podResult);

describe("CHECK", () => {
  test("asks the agent, after the other IPAM plugin", async () => {
    using node = new PluginNode();
    const ipam = node.plugin("other", "");
    expect(await node.call("CHECK", { ipam, prevResult })).toEqual({ status: 0, out: undefined, log: [] });
    expect(node.asked).toMatchObject([{ method: "CmdCheck", timeoutMs: expect.any(Number) }]);
    expect(node.asked[0]?.timeoutMs).toBeGreaterThan(20_000);
    expect(node.delegated).toEqual(["CHECK"]);
    node.plugin("other", "exit 1");
    expect((await node.call("CHECK", { ipam, prevResult })).status).toBe(1);
    expect(node.asked).toHaveLength(1);
  });

  test("of our own addresses runs no other plugin, and passes a refusal on", async () => {
    using node = new PluginNode(() => refused(109, "the interface is gone"));
    expect((await node.call("CHECK", { prevResult })).out).toMatchObject({ code: 109, msg: "the interface is gone" });
    expect(node.delegated).toEqual([]);
  });

  test.each([
    ["the result of the ADD", {}, {}, { code: 7, msg: expect.stringContaining("prevResult") }],
    ["a namespace", { prevResult }, { CNI_NETNS: "none" }, { code: 4 }],
  ])("without %s is refused before anybody is asked", async (_, conf, env, error) => {
    using node = new PluginNode();
    expect((await node.call("CHECK", conf, env)).out).toMatchObject(error);
    expect(node.asked).toEqual([]);
  });
});
