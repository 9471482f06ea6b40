import { describe, expect, test, vi } from "vitest";
import { uptimeMs } from "../shared/os/uptime.ts";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { PluginNode, podResult, refused, result } from "../test/fakes/plugin-node.ts";
import { maxTraceHeaderBytes, traceOf } from "./agent-call.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

test("takes the trace variables that are set, under the names of their headers", () => {
  expect(traceOf({ TRACEPARENT: "00-a-b-01", TRACESTATE: "", BAGGAGE: "k=v", PATH: "/bin" })).toEqual({
    traceparent: "00-a-b-01",
    baggage: "k=v",
  });
});

test("leaves out one that is longer than any party must pass on", () => {
  const [most, more] = [0, 1].map((by) => "x".repeat(maxTraceHeaderBytes + by));
  expect(traceOf({ TRACESTATE: more, BAGGAGE: most })).toEqual({ baggage: most });
});

describe("a call to the agent", () => {
  test("carries the runtime's trace, when it began, and until when it is waited for", async () => {
    using node = new PluginNode(() => result(podResult));
    const beforeMs = uptimeMs()!;
    await node.call("ADD", { addTimeoutMs: 5000 }, { TRACEPARENT: "00-a-b-01" });
    const afterMs = uptimeMs()!;
    const [asked] = node.asked;
    const { traceparent, ...times } = asked?.metadata ?? {};
    expect(traceparent).toBe("00-a-b-01");
    const startedMs = Number(times["pipette-started-uptime-ms"]);
    const untilMs = Number(times["pipette-until-uptime-ms"]);
    // The kernel's uptime is read in hundredths of a second.
    expect(startedMs).toBeGreaterThanOrEqual(beforeMs - 20);
    expect(startedMs).toBeLessThanOrEqual(afterMs);
    expect(untilMs - startedMs).toBeGreaterThanOrEqual(asked!.timeoutMs);
    expect(untilMs).toBeLessThanOrEqual(afterMs + 5000);
    expect(asked!.timeoutMs).toBeLessThanOrEqual(5000);
  });

  test("waits for an agent that is not there yet, for less each time than is left", async () => {
    let calls = 0;
    using node = new PluginNode(() => {
      if (++calls <= 3) throw new RpcError(GrpcCode.unavailable, "nobody there", { absent: true });
      return result(podResult);
    });
    const started = performance.now();
    expect((await node.call("ADD")).status).toBe(0);
    // 20, 40 and 80 ms.
    expect(performance.now() - started).toBeGreaterThanOrEqual(138);
    const timeouts = node.asked.map(({ timeoutMs }) => timeoutMs);
    expect(timeouts).toEqual(timeouts.toSorted((a, b) => b - a));
    expect(new Set(timeouts).size).toBe(4);
  });

  test("gives up in time, and says how long somebody was waited for", async () => {
    using node = new PluginNode(() => {
      throw new RpcError(GrpcCode.unavailable, 'nobody at "/run/a.sock"', { absent: true });
    });
    const { out } = await node.call("ADD", { addTimeoutMs: 400 });
    expect(out).toMatchObject({ code: 11, msg: 'nobody at "/run/a.sock"' });
    const waitedMs = Number(/^it was waited for (\d+) ms; /.exec(out.details)?.[1]);
    // 20 ms, then twice as long each time, as often as that fits.
    expect([20, 60, 140, 300].indexOf(waitedMs)).toBe(node.asked.length - 2);
  });

  test("is made once more where the agent ends over it, and no third time", async () => {
    using node = new PluginNode(() => {
      throw new RpcError(GrpcCode.unavailable, "it ended");
    });
    expect((await node.call("ADD")).out).toMatchObject({ code: 11, msg: "it ended" });
    expect(node.asked).toHaveLength(2);
  });

  test.each([
    ["it is refused", () => refused(101, "full")],
    [
      "there is no answer in time",
      () => {
        throw new RpcError(GrpcCode.deadlineExceeded, "no answer");
      },
    ],
    [
      "a server is there that cannot be spoken to",
      () => {
        throw new RpcError(GrpcCode.unavailable, "no rights", { unreachable: true });
      },
    ],
  ])("is made once where %s", async (_, agent) => {
    using node = new PluginNode(agent);
    expect((await node.call("ADD")).status).toBe(1);
    expect(node.asked).toHaveLength(1);
  });

  test("whose refusal says little still is an error of the specification", async () => {
    using node = new PluginNode(() => refused(0, ""));
    const msg = "Cannot finish the call: the agent gave no reason";
    expect((await node.call("ADD")).out).toMatchObject({ code: 201, msg });
  });

  test.each([
    ["", "empty"],
    ["[1]", "no JSON object"],
    ["{", "no JSON object"],
  ])("that is answered with %j has no result", async (text, is) => {
    using node = new PluginNode(() => result(text));
    const msg = `Cannot use the agent's result: it is ${is}, wanted a CNI result`;
    expect((await node.call("ADD")).out).toMatchObject({ code: 201, msg, details: text });
  });

  test("is passed on by a DEL whatever it is answered with", async () => {
    using node = new PluginNode(() => result("no JSON"));
    expect(await node.call("DEL")).toMatchObject({ status: 0, out: undefined, log: [] });
  });

  test("a fault of our own is no call that was lost", async () => {
    using node = new PluginNode(() => {
      throw new TypeError("broken");
    });
    await node.lease();
    expect((await node.call("DEL")).out.msg).toContain("broken");
    expect(await node.kept()).toEqual(["c1: allocated"]);
  });
});
