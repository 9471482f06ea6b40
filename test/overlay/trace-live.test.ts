import { afterAll, beforeAll, expect, test } from "vitest";
import { traceLive } from "../../operator/trace/live.ts";
import type { TraceDocument } from "../../shared/documents/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { serviceIp, startTraceLab, type TraceLab, traceFlowsOn, untilNoTraceFlows } from "./lab/trace-lab.ts";
import { call, NamedServer } from "./named-server.ts";

const never = new AbortController().signal;
/** Longer than what a switch whose machine is busy needs for a packet. */
const refusedMs = 500;

describeWith("real connections that agents follow", ["root", "openvswitch", "nft", "etcd"], () => {
  let cluster: TraceLab;
  const servers = new DisposableStack();

  beforeAll(async () => {
    compileExecutables();
    cluster = await startTraceLab();
    const { pods } = cluster;
    for (const [pod, port] of [
      [pods.c, 80],
      [pods.c, 8080],
      [pods.closed, 80],
      [pods.b, 80],
    ] as const)
      servers.use(await NamedServer.start(pod.namespace, pod.name, port));
  }, 120_000);
  afterAll(async () => {
    servers.dispose();
    await cluster?.[Symbol.asyncDispose]();
  });

  type Wanted = Partial<Omit<Parameters<typeof traceLive>[1], "from" | "to">>;
  /** Begins to wait, has `act` done again and again, and answers what was seen. */
  async function during(
    from: string,
    to: string,
    more: Wanted,
    act: () => Promise<unknown>,
    nodes = [1, 2],
  ): Promise<TraceDocument> {
    const { lab, source } = cluster;
    let isOver = false;
    const seen = traceLive(source, { from, to, dropped: false, seconds: 30, ...more }, never).finally(() => {
      isOver = true;
    });
    const waits = async () =>
      (await Promise.all(nodes.map((node) => traceFlowsOn(lab.node(node))))).every((flows) => flows.length > 0);
    await eventually(async () => isOver || (await waits()), "flows that pick connections");
    while (!isOver) {
      await act();
      await Bun.sleep(100);
    }
    return await seen;
  }

  const { c, closed } = { c: () => cluster.pods.c, closed: () => cluster.pods.closed };
  const asks =
    (from: LabPod, to: LabPod, port: number, family: 4 | 6 = 4) =>
    () =>
      call(from.namespace, to.address(family), port, refusedMs);

  test.each([4, 6] as const)(
    "a connection of IPv%i to another node, and nothing is changed about it",
    async (family) => {
      const heard: unknown[] = [];
      const ask = async () => heard.push(await asks(cluster.pods.a, c(), 80, family)());
      const trace = await during("shop/a", "shop/c", { protocol: "tcp", port: 80 }, ask);
      expect(trace.verdict).toMatchObject({ t: "delivered", node: "n2", text: expect.stringContaining("pod shop/c") });
      expect(trace.nodes.map(({ node }) => node)).toEqual(["n1", "n2"]);
      expect(trace.packet).toMatchObject({ family: `IPv${family}`, protocol: "tcp", destinationPort: 80 });
      expect(heard.every((one) => Object(one).name === "c")).toBe(true);
    },
  );

  test("pings, to whomever", async () => {
    const ping = () => answers(cluster.pods.a.namespace, cluster.pods.b.address(4));
    const trace = await during("shop/a", "any", { protocol: "icmp" }, ping, [1]);
    expect(trace.verdict).toMatchObject({ t: "delivered", node: "n1", text: expect.stringContaining("pod shop/b") });
  });

  test("from whomever, to a pod", async () => {
    const trace = await during("any", "shop/c", { port: 80 }, asks(cluster.pods.b, c(), 80), [2]);
    expect(trace.verdict).toMatchObject({ t: "delivered", node: "n2" });
    expect(trace.nodes[0]).toMatchObject({ node: "n2", role: "destination", steps: [{ action: "received" }, {}, {}] });
  });

  test("only what is dropped, with the policy, beside what passes", async () => {
    const { a } = cluster.pods;
    const both = () => Promise.all([asks(a, closed(), 80)(), asks(a, closed(), 81)()]);
    const trace = await during("shop/a", "shop/closed", { dropped: true }, both);
    expect(trace.verdict).toMatchObject({ t: "dropped", node: "n2", policies: ["x/web-only"] });
    expect(trace.packet).toMatchObject({ destinationPort: 81 });
    expect(trace.nodes.map(({ node }) => node)).toEqual(["n1", "n2"]);
    const quiet = await during("shop/mute", "any", { dropped: true }, asks(cluster.pods.mute, c(), 80), [1]);
    expect(quiet.verdict).toMatchObject({ t: "dropped", node: "n1", policies: ["x/quiet"] });
  });

  test("by a service", async () => {
    cluster.serve([c()]);
    const ask = () => call(cluster.pods.a.namespace, serviceIp, 80, refusedMs);
    await eventually(async () => (await ask())?.name === "c", "the service");
    const trace = await during("shop/a", "shop/web", {}, ask);
    expect(trace.verdict).toMatchObject({ t: "delivered", node: "n2" });
    expect(trace.nodes[0]?.steps.find(({ component }) => component === "loadBalancing")).toMatchObject({
      translatedDestination: `${c().address(4)}:8080`,
    });
  });

  test("no connection that matches is an answer too", async () => {
    const trace = await traceLive(
      cluster.source,
      { from: "shop/a", to: "shop/c", port: 9, dropped: false, seconds: 1 },
      never,
    );
    expect(trace.verdict).toEqual({ t: "nothing", text: "no connection that matches came within 1 s" });
    for (const node of cluster.lab.nodes) await untilNoTraceFlows(node);
  });
});
