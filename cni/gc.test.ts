import { describe, expect, test, vi } from "vitest";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { PluginNode } from "../test/fakes/plugin-node.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

const keep = (...ids: readonly string[]) => ({
  "cni.dev/valid-attachments": ids.map((containerID) => ({ containerID, ifname: "eth0" })),
});
const gone = (): never => {
  throw new RpcError(GrpcCode.unavailable, "nobody there", { absent: true });
};

describe("GC", () => {
  test("has the agent collect, with the list, and leaves the leases to it", async () => {
    using node = new PluginNode(() => ({ failures: [] }));
    await node.lease("stale");
    expect((await node.call("GC", keep("c1"))).status).toBe(0);
    expect(node.asked).toMatchObject([
      { method: "Gc", request: { network: "n", valid: [{ containerId: "c1", ifname: "eth0" }] }, timeoutMs: 10_000 },
    ]);
    expect(await node.kept()).toEqual(["stale: allocated"]);
  });

  test("without an agent gives up what is not listed, of this network", async () => {
    using node = new PluginNode(gone);
    for (const id of ["c1", "stale"]) await node.lease(id);
    await Bun.sleep(2);
    expect((await node.call("GC", { ...keep("c1"), logLevel: "info" })).log.join("")).toContain("stale");
    expect(await node.kept()).toEqual(["c1: allocated", "stale: releasing"]);
  });

  test("gives up nobody who came after its list was made, also where the agent answered late", async () => {
    using node = new PluginNode(async () => {
      await Bun.sleep(2);
      await node.lease("young");
      await Bun.sleep(2);
      return gone();
    });
    await node.lease("stale");
    await Bun.sleep(2);
    const { status, log } = await node.call("GC", keep());
    expect([status, log.length]).toEqual([0, 1]);
    expect(await node.kept()).toEqual(["stale: releasing", "young: allocated"]);
  });

  test.each([
    [["c1 stands"], "Cannot collect all garbage: 1 attachment is left"],
    [["c1 stands", "c2 too"], "Cannot collect all garbage: 2 attachments are left"],
  ])("of which the agent could not do all fails, to be tried again: %j", async (failures, msg) => {
    using node = new PluginNode(() => ({ failures }));
    await node.lease("stale");
    expect((await node.call("GC", keep())).out).toMatchObject({ code: 11, msg, details: failures.join("; ") });
    expect(await node.kept()).toEqual(["stale: allocated"]);
  });

  test("is over where an agent of another make has nothing to collect", async () => {
    using node = new PluginNode(() => {
      throw new RpcError(GrpcCode.unimplemented, "what?");
    });
    await node.lease("stale");
    expect(await node.call("GC", keep())).toMatchObject({ status: 0, log: [] });
    expect(await node.kept()).toEqual(["stale: allocated"]);
  });

  test("with another IPAM plugin runs that, too, whatever the agent does; the first failure is told", async () => {
    using node = new PluginNode(gone);
    const ipam = node.plugin("other", "exit 3");
    const { out } = await node.call("GC", { ipam, ...keep() });
    expect(out).toMatchObject({ code: 11, msg: "nobody there" });
    expect(out.details).toMatch(/^nobody there; Cannot run GC of the IPAM plugin "other": it ended with status 3/);
    expect([node.delegated, await node.kept()]).toEqual([["GC"], []]);
    // One failure is told as it is.
    node.serve(() => ({ failures: [] }));
    expect((await node.call("GC", { ipam, ...keep() })).out).toMatchObject({ code: 101, details: "" });
    node.plugin("other", "exit 0");
    expect((await node.call("GC", { ipam, ...keep() })).status).toBe(0);
  });

  test("a fault of our own is no absence of the agent", async () => {
    using node = new PluginNode(() => {
      throw new TypeError("broken");
    });
    await node.lease("stale");
    expect((await node.call("GC", keep())).out.msg).toContain("broken");
    expect(await node.kept()).toEqual(["stale: allocated"]);
  });
});
