import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { traceCommand } from "../../agent/commands/trace/trace-command.ts";
import { traceInjected } from "../../operator/trace/inject.ts";
import type { TraceDocument } from "../../shared/documents/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { runAt } from "../fakes/terminal-run.ts";
import { eventually } from "../support/agent-process.ts";
import { checksum, EtherType, ethernet, ipv4, udp } from "../support/frames/frame.ts";
import { RawLink } from "../support/frames/raw-link.ts";
import { describeWith } from "../support/requires.ts";
import { UdpEar } from "../support/udp-ear.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { openRawPod } from "./lab/raw-pod.ts";
import { serviceIp, startTraceLab, type TraceLab, traceFlowsOn, untilNoTraceFlows } from "./lab/trace-lab.ts";

const never = new AbortController().signal;

describeWith("packets that agents inject", ["root", "openvswitch", "nft", "etcd"], () => {
  let cluster: TraceLab;

  beforeAll(async () => {
    compileExecutables();
    cluster = await startTraceLab();
  }, 120_000);
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  type Wanted = Omit<Parameters<typeof traceInjected>[1], "from" | "to">;
  const inject = (from: string, to: string, more: Wanted = {}): Promise<TraceDocument> =>
    traceInjected(cluster.source, { from, to, ...more }, never);

  const families = [4, 6] as const;
  const packets = [{ protocol: "icmp" }, { protocol: "tcp", port: 80 }, { protocol: "udp", port: 53 }] as const;
  const placesIn = (trace: TraceDocument): readonly string[] => trace.nodes.map(({ node, role }) => `${node} ${role}`);
  const stepsOn = (trace: TraceDocument, node: string): readonly string[] =>
    (trace.nodes.find((one) => one.node === node)?.steps ?? []).map(
      ({ component, action }) => `${component} ${action}`,
    );

  describe.each(families)("of IPv%i", (family) => {
    test.each(packets)("to a pod of the same node: %j", async (packet) => {
      const trace = await inject("shop/a", "shop/b", { ...packet, family });
      expect(trace.verdict).toMatchObject({ t: "delivered", node: "n1", text: expect.stringContaining("pod shop/b") });
      expect(placesIn(trace)).toEqual(["n1 source"]);
      expect(stepsOn(trace, "n1")).toEqual(["spoofGuard forwarded", "routing forwarded", "forwarding delivered"]);
      expect(trace.packet).toMatchObject({ family: `IPv${family}`, protocol: packet.protocol });
      expect(trace.lastSeenAt).toMatchObject({ node: "n1", table: "Output" });
    });

    test.each(packets)("to a pod of another node: %j", async (packet) => {
      const trace = await inject("shop/a", "shop/c", { ...packet, family });
      expect(trace.verdict).toMatchObject({ t: "delivered", node: "n2", text: expect.stringContaining("pod shop/c") });
      expect(placesIn(trace)).toEqual(["n1 source", "n2 destination"]);
      expect(stepsOn(trace, "n1").at(-1)).toBe("forwarding forwarded");
      expect(trace.nodes[0]?.steps.at(-1)).toMatchObject({ tunnelDestination: "172.30.0.2", toNode: "n2" });
      expect(stepsOn(trace, "n2")).toEqual(["forwarding received", "routing forwarded", "forwarding delivered"]);
      expect([trace.failures, trace.remarks]).toEqual([[], []]);
    });
  });

  test("a policy lets one port in, and is named with its rule", async () => {
    const trace = await inject("shop/a", "shop/closed", { protocol: "tcp", port: 80 });
    expect(trace.verdict).toMatchObject({ t: "delivered", node: "n2" });
    expect(trace.nodes[1]?.steps.find(({ component }) => component === "policy")).toMatchObject({
      ...{ action: "forwarded", direction: "ingress", policies: ["x/web-only"] },
      rule: "TCP 80 from 10.10.0.0/16, fd10::/48",
    });
  });

  test("a policy of the receiver drops another port, on the receiver's node", async () => {
    const trace = await inject("shop/a", "shop/closed", { protocol: "tcp", port: 81 });
    expect(trace.verdict).toMatchObject({ t: "dropped", node: "n2", policies: ["x/web-only"] });
    expect(trace.verdict.text).toContain("the pod is isolated by x/web-only");
    expect(trace.lastSeenAt).toMatchObject({ node: "n2", table: "IngressMetric" });
  });

  test("a policy of the sender drops it before it leaves", async () => {
    const trace = await inject("shop/mute", "shop/c", { protocol: "tcp", port: 80 });
    expect(trace.verdict).toMatchObject({ t: "dropped", node: "n1", policies: ["x/quiet"] });
    expect(placesIn(trace)).toEqual(["n1 source"]);
  });

  test("what nobody has is dropped where the tables say so, here and there", async () => {
    for (const [node, pod] of [
      ["n1", cluster.pods.b],
      ["n2", cluster.pods.c],
    ] as const) {
      const nobody = pod.address(4).replace(/\d+$/, "200");
      const trace = await inject("shop/a", nobody);
      expect(trace.verdict).toMatchObject({
        t: "dropped",
        node,
        text: expect.stringContaining("no pod of this node has"),
      });
      expect(trace.lastSeenAt).toMatchObject({ node, table: "L3Forwarding" });
    }
  });

  /** Agents read the file of services a moment later. */
  async function served(endpoints: readonly LabPod[], ends: (verdict: TraceDocument["verdict"]) => boolean) {
    cluster.serve(endpoints);
    let last: TraceDocument | undefined;
    await eventually(
      async () => {
        last = await inject("shop/a", serviceIp, { protocol: "tcp", port: 80 });
        await Bun.sleep(500);
        return ends(last.verdict);
      },
      "the service in the switches",
      20_000,
    ).catch((caught: unknown) => {
      throw new Error(`${caught}: ${JSON.stringify(last)}`);
    });
  }

  test("by a service, to an endpoint here or there; without any it goes nowhere", async () => {
    const { pods } = cluster;
    await served([pods.c], ({ t, node }) => t === "delivered" && node === "n2");
    const trace = await inject("shop/a", "shop/web");
    expect(trace.verdict).toMatchObject({ t: "delivered", node: "n2" });
    expect(placesIn(trace)).toEqual(["n1 source", "n2 destination"]);
    expect(trace.nodes[0]?.steps.find(({ component }) => component === "loadBalancing")).toMatchObject({
      ...{ action: "forwarded", translatedDestination: `${pods.c.address(4)}:8080` },
    });
    await served([pods.b], ({ t, node }) => t === "delivered" && node === "n1");
    await served([], ({ t }) => t === "rejected");
  });

  test("out of the network it leaves by the node's kernel, and is not really sent", async () => {
    const trace = await inject("shop/a", "198.51.100.1", { protocol: "udp", port: 53 });
    expect(trace.verdict).toMatchObject({ t: "forwardedOutOfNetwork", node: "n1" });
  });

  test("where the network between is cut, the last place is named", async () => {
    const { underlay } = cluster.lab;
    await underlay.plug(2, "down");
    try {
      const trace = await inject("shop/a", "shop/c");
      expect(trace.verdict).toMatchObject({
        t: "lost",
        node: "n1",
        text: expect.stringContaining("node n2 has not seen it"),
      });
      expect(trace.lastSeenAt).toMatchObject({
        node: "n1",
        table: "Output",
        text: expect.stringContaining("through the tunnel to node n2"),
      });
    } finally {
      await underlay.plug(2, "up");
    }
  });

  test("what comes late, when it was given up, is taken out too: nobody gets it, although it was sent twice", async () => {
    const { lab, pods } = cluster;
    const { namespace } = lab.underlay;
    using ear = await UdpEar.open(pods.c.namespace, pods.c.address(4), 53);
    using near = await RawLink.open(namespace, "node1");
    using far = await RawLink.open(namespace, "node2");
    const chain = 'chain from1 { type filter hook ingress device "node1" priority -10; udp dport 6081 drop; }';
    await namespace.run("nft -f -", `table netdev held { ${chain}; }`);
    const trace = await inject("shop/a", "shop/c", { protocol: "udp", port: 53 });
    await namespace.run("nft delete table netdev held");
    expect(trace.verdict).toMatchObject({ t: "lost", node: "n1" });
    expect(trace.remarks).toEqual([expect.stringContaining("it was sent 2 times")]);
    const held = near.received().filter((frame) => Buffer.from(frame).includes("pipette trace "));
    expect(held).toHaveLength(2);
    for (const frame of held) far.send(frame);
    // Behind them comes what is meant for it.
    await pods.a.namespace.within(async () => {
      const socket = await Bun.udpSocket({ hostname: pods.a.address(4) });
      socket.send("heard", 53, pods.c.address(4));
      socket.close();
    });
    await expect.poll(() => ear.heard).toBeGreaterThan(0);
    await Bun.sleep(300);
    expect(ear.heard).toBe(1);
    await untilNoTraceFlows(lab.node(2));
  });

  test("a pod that makes its packets look like an injected one is neither told of nor let through", async () => {
    const { source, pods } = cluster;
    const { link, mac, gatewayMac, ...own } = await openRawPod(pods.a);
    using _ = link;
    const [tag, sourcePort, probe] = [35, 50_001, "00112233445566778899aabbccddeeff"] as const;
    const target = pods.closed.address(4);
    const watch = { probe, role: "receive", seconds: 30, source: [own[4]], protocol: "udp", sourcePort, tag } as const;
    const begun = await source.trace!("n2", { t: "start", ...watch }, never);
    const forged = (data: string): Uint8Array => {
      const ends = { from: own[4], to: target };
      const frame = ethernet(
        { from: mac, to: gatewayMac },
        EtherType.ipv4,
        ipv4(ends, 17, udp(ends, { from: sourcePort, to: 81 }, Buffer.from(data))),
      );
      frame[15] = tag << 2;
      frame.set([0, 0], 24);
      const sum = checksum(frame.subarray(14, 34));
      frame.set([sum >> 8, sum & 0xff], 24);
      return frame;
    };
    for (let i = 0; i < 5; i++) link.send(forged(`pipette trace ${"x".repeat(16)}`));
    const seen = await source.trace!(
      "n2",
      { t: "collect", session: begun.session, after: begun.revision, waitMs: 1_500 },
      never,
    );
    expect(seen.packets).toEqual([]);
    await source.trace!("n2", { t: "end", session: begun.session }, never);
    await untilNoTraceFlows(cluster.lab.node(2));
  });

  test("where the other node's agent is away, nothing is sent there, and it is named", async () => {
    const [, node] = cluster.lab.nodes;
    const to = cluster.pods.c.address(4);
    await node?.agent.end("SIGKILL");
    try {
      const trace = await inject("shop/a", to);
      expect(trace.verdict).toMatchObject({
        t: "unknown",
        node: "n1",
        text: expect.stringContaining("node n2 did not look out"),
      });
      expect(trace.lastSeenAt).toMatchObject({ node: "n1", table: "Output" });
      expect(trace.failures).toEqual([{ node: "n2", reason: expect.stringContaining("nobody serves") }]);
    } finally {
      await node?.startAgent();
    }
  });

  test("flows of a trace whose agent is killed end by themselves", async () => {
    const { source, pods, lab } = cluster;
    const node = lab.node(2);
    const watch = { probe: "00112233445566778899aabbccddeeff", tag: 35, sourcePort: 50_001, seconds: 60 } as const;
    await source.trace!(
      "n2",
      { t: "start", ...watch, role: "receive", source: [pods.a.address(4)], protocol: "udp" },
      never,
    );
    expect(await traceFlowsOn(node)).not.toEqual([]);
    await node.agent.end("SIGKILL");
    expect(await traceFlowsOn(node)).not.toEqual([]);
    await untilNoTraceFlows(node, 30_000);
    await node.startAgent();
  });

  test("by the socket of one node its own part is told, and nothing is sent on", async () => {
    const [node] = cluster.lab.nodes;
    const by = (...args: string[]) =>
      runAt("pipette trace", traceCommand, [...args, "--inject", "--socket", node?.home.socket ?? ""]);
    const run = await by("shop/a", cluster.pods.c.address(4));
    expect([run.status, run.stderr]).toEqual([0, ""]);
    expect(run.stdout).toMatch(/^goes on to node n2: sent through the tunnel to node n2/m);
    expect(run.stdout).toMatch(/^\(other nodes are not asked by the socket of this one/m);
    const nobody = await by("shop/a", "shop/c");
    expect([nobody.status, nobody.stderr]).toEqual([3, expect.stringContaining('no pod and no service "shop/c"')]);
    const wrong = await by("shop/a", "shop/b", "--live");
    expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringContaining("more than one of --inject, --live")]);
  });

  test("leave no flow behind", async () => {
    for (const node of cluster.lab.nodes) await untilNoTraceFlows(node);
  });
});
