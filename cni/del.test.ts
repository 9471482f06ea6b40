import { describe, expect, test, vi } from "vitest";
import { Allocator } from "../ipam/mod.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { PluginNode, refused } from "../test/fakes/plugin-node.ts";
import { retryable } from "./del.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

const gone = (): never => {
  throw new RpcError(GrpcCode.unavailable, "nobody there", { absent: true });
};

test("an error of a DEL keeps its code and loses the words that containerd takes for success", () => {
  const error = retryable(new CniError(5, "Lease Not Found in x", { details: "open /x: No such file or directory" }));
  expect(error.code).toBe(5);
  expect(error.message).toBe("Lease absent in x");
  expect(error.details).toBe("open /x: absent file or directory");
});

describe("DEL", () => {
  test("that the agent has done leaves everything else to it", async () => {
    using node = new PluginNode();
    await node.lease();
    // A call that takes no time has all of it left.
    const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
    try {
      expect(await node.call("DEL", {}, { CNI_NETNS: "" })).toEqual({ status: 0, out: undefined, log: [] });
    } finally {
      clock.mockRestore();
    }
    expect(node.asked).toMatchObject([{ method: "CmdDel", request: { containerId: "c1" }, timeoutMs: 10_000 }]);
    expect(await node.kept()).toEqual(["c1: allocated"]);
  });

  test.each([
    ["is not there", gone],
    ["refuses", () => refused(107, "no bridge")],
  ])("where the agent %s leaves word, asks once, and succeeds", async (_, agent) => {
    using node = new PluginNode(agent);
    for (const id of ["c0", "c1"]) await node.lease(id);
    const { status, log } = await node.call("DEL");
    expect([status, log.length, node.asked.length]).toEqual([0, 1, 1]);
    expect(await node.kept()).toEqual(["c0: allocated", "c1: releasing"]);
  });

  test("of a sandbox without a lease of ours is put on record", async () => {
    using node = new PluginNode(gone);
    const ipam = node.plugin("other", "");
    expect((await node.call("DEL", { ipam })).status).toBe(0);
    expect([await node.kept(), node.delegated]).toEqual([["c1: departing"], ["DEL"]]);
  });

  test("of a sandbox that has been added again since leaves no word, which would end that one", async () => {
    using node = new PluginNode(() => refused(CniCode.overtaken, "it is there anew"));
    await node.lease();
    const ipam = node.plugin("other", "");
    expect((await node.call("DEL", { ipam })).out).toMatchObject({ code: 104, msg: "it is there anew" });
    expect([await node.kept(), node.delegated]).toEqual([["c1: allocated"], []]);
  });

  test("that was lost on the way leaves word, too", async () => {
    using node = new PluginNode(() => {
      throw new RpcError(GrpcCode.unknown, "what?");
    });
    await node.lease();
    expect((await node.call("DEL")).status).toBe(0);
    expect(await node.kept()).toEqual(["c1: releasing"]);
  });

  test("with a section that cannot be read keeps its word where the configuration says", async () => {
    using node = new PluginNode(gone);
    const ipam = { type: "pipette-ipam", dataDir: "relative" };
    const { status, log } = await node.call("DEL", { ipam, logLevel: "warn" });
    expect([status, log.join("\n")]).toEqual([0, expect.stringContaining("relative")]);
    expect(await node.kept()).toEqual(["c1: departing"]);
  });

  test("waits for a store that others keep as long as it may, and fails only then", async () => {
    using node = new PluginNode(gone);
    await node.lease();
    const release = Allocator.prototype.release;
    const locked = (times: number): void => {
      let calls = 0;
      vi.spyOn(Allocator.prototype, "release").mockImplementation(function (this: Allocator, ...args) {
        if (++calls <= times) throw new CniError(CniCode.tryAgainLater, "locked");
        return release.apply(this, args);
      });
    };
    try {
      locked(3);
      expect((await node.call("DEL")).status).toBe(0);
      expect(await node.kept()).toEqual(["c1: releasing"]);
      vi.restoreAllMocks();
      locked(Number.POSITIVE_INFINITY);
      expect((await node.call("DEL", { delTimeoutMs: 30 })).out).toMatchObject({ code: 11, msg: "locked" });
      vi.restoreAllMocks();
      const failing = vi.spyOn(Allocator.prototype, "release").mockImplementation(() => {
        throw new CniError(CniCode.io, "disk full");
      });
      expect((await node.call("DEL")).out).toMatchObject({ code: 5, msg: "disk full" });
      expect(failing).toHaveBeenCalledTimes(1);
    } finally {
      vi.restoreAllMocks();
    }
  });
});
