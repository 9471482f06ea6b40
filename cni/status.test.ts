import { describe, expect, test, vi } from "vitest";
import { uptimeMs } from "../shared/os/uptime.ts";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { PluginNode } from "../test/fakes/plugin-node.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

const working = () => ({ problems: [] });
const gone = (): never => {
  throw new RpcError(GrpcCode.unavailable, 'nobody at "/run/a.sock"', { absent: true });
};

describe("STATUS", () => {
  test("is good where agent and other IPAM plugin are", async () => {
    using node = new PluginNode(working);
    expect(await node.call("STATUS", { ipam: node.plugin("other", "") })).toEqual({
      status: 0,
      out: undefined,
      log: [],
    });
    expect(node.asked).toMatchObject([{ method: "Status", request: { network: "n" }, timeoutMs: 5_000 }]);
    expect(node.delegated).toEqual(["STATUS"]);
  });

  test("left by the small program it has what is left of its time, and says so in whole milliseconds", async () => {
    using node = new PluginNode(working);
    const started = String(Math.floor(((uptimeMs() ?? 0) - 1_000.25) * 1000));
    expect((await node.call("STATUS", {}, {}, "", ["--forwarded", "lost", started])).status).toBe(0);
    const [{ timeoutMs } = { timeoutMs: 0 }] = node.asked;
    expect(timeoutMs).toBe(Math.round(timeoutMs));
    expect(timeoutMs).toBeGreaterThan(0);
    expect(timeoutMs).toBeLessThanOrEqual(4_000);
  });

  test("tells the worst first: pods that run are limited, then what new ones miss", async () => {
    const problems = [
      { code: 50, message: "no bridge" },
      { code: 51, message: "no route" },
      { code: 3, message: "something new" },
    ];
    using node = new PluginNode(() => ({ problems }));
    const ipam = node.plugin("other", 'echo \'{"code":137,"msg":"closed"}\'; exit 1');
    expect((await node.call("STATUS", { ipam })).out).toMatchObject({
      code: 51,
      msg: "no route",
      details: "no bridge; something new; closed",
    });
    node.serve(() => ({ problems: [problems[2]] }));
    expect((await node.call("STATUS")).out).toMatchObject({ code: 50, msg: "something new", details: "" });
  });

  test("without an agent is not available, and says where to look", async () => {
    using node = new PluginNode(gone);
    const { out } = await node.call("STATUS");
    expect(out).toMatchObject({ code: 50, msg: 'nobody at "/run/a.sock"' });
    expect(out.details).toContain("tells what keeps it");
  });

  test("of an agent of another make is good; a fault of our own is not", async () => {
    using node = new PluginNode(() => {
      throw new RpcError(GrpcCode.unimplemented, "what?");
    });
    expect((await node.call("STATUS")).status).toBe(0);
    node.serve(() => {
      throw new TypeError("broken");
    });
    expect((await node.call("STATUS")).out.msg).toContain("broken");
  });

  test("of ranges that no ADD can use says that they are wrong, and asks nobody", async () => {
    using node = new PluginNode(working);
    const { out } = await node.call("STATUS", { ipam: { ...node.own, subnet: "10.0.0.0/33" } });
    expect([out.code, node.asked]).toEqual([7, []]);
    expect((await node.call("STATUS", { ipam: {} })).status).toBe(0);
  });
});
