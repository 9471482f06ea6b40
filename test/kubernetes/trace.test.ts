import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "bun";
import { afterAll, beforeAll, expect, test } from "vitest";
import { traceCommand } from "../../agent/commands/trace/trace-command.ts";
import type { TraceDocument } from "../../shared/documents/mod.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { runAt, type TerminalRun } from "../fakes/terminal-run.ts";
import type { LabNode } from "../overlay/lab/lab-node.ts";
import { Relay } from "../overlay/lab/relay.ts";
import { startTraceLab, type TraceLab, traceFlowsOn } from "../overlay/lab/trace-lab.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { agentPod, person, shipChart } from "./operators.ts";
import { requestToken } from "./service-account.ts";

const port = 10_352;
const needs = ["linux", "root", "openvswitch", "nft", "kube-apiserver", "etcd", "openssl", "helm"] as const;

/** Where the API server finds a node's agent. */
const seenAt = (node: number): string => `192.0.2.${node}`;

describeWith("one command from outside, through a real API server and two nodes with real switches", needs, () => {
  const stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "pt-trace-"));
  let cluster: TraceLab;

  beforeAll(async () => {
    compileExecutables();
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    const sandbox = stack.use(await NetworkSandbox.enter("pt-tk-"));
    for (const node of [1, 2]) await sandbox.node(`ip addr add ${seenAt(node)}/32 dev lo`);
    const server = stack.use(await ApiServer.start());
    await shipChart(server, ["metrics.enabled"]);
    const token = join(directory, "agent-token");
    writeFileSync(token, await requestToken(server, {}), { mode: 0o600 });
    const access = { server: server.url, ca: server.ca, token };
    const metrics = (node: string) => ({ metrics: { listen: `172.30.0.${node.slice(1)}:${port}`, ...access } });
    const ways = async (node: LabNode) => {
      stack.use(new Relay(node.namespace, "127.0.0.1", Number(new URL(server.url).port)));
      stack.use(wayTo(node));
    };
    cluster = stack.use(await startTraceLab({}, { sections: metrics, before: ways }));
    for (const node of cluster.lab.nodes) {
      const [pod] = [...node.pods];
      const podCIDRs = [`${pod?.address(4).replace(/\d+$/, "0")}/24`];
      const metadata = { name: node.name };
      await server.create("/api/v1/nodes", { metadata, spec: { podCIDR: podCIDRs[0], podCIDRs } });
      await agentPod(server, { node: node.name, podIP: seenAt(node.number), port });
      await node.agent.logged(({ message }) => message === "metrics are served");
    }
    await person(server, directory, "viewer", ["pipette-viewer"]);
    await person(server, directory, "maintainer", ["pipette-viewer", "pipette-maintainer"]);
  }, 240_000);
  afterAll(() => stack.disposeAsync());

  const trace = (who: string, ...args: string[]): Promise<TerminalRun> =>
    runAt("pipette trace", traceCommand, [...args, "--kubeconfig", join(directory, who)]);
  const told = ({ stdout }: TerminalRun): TraceDocument => JSON.parse(stdout);

  test("an injected packet goes from node to node, and both tell of it", async () => {
    const run = await trace("maintainer", "shop/a", "shop/c", "--inject", "-o", "json");
    expect([run.status, run.stderr]).toEqual([0, ""]);
    expect(told(run)).toMatchObject({
      verdict: { t: "delivered", node: "n2" },
      nodes: [{ node: "n1" }, { node: "n2" }],
      failures: [],
    });
    const words = await trace("maintainer", "shop/a", cluster.pods.c.address(4), "--inject", "--tcp", "80");
    expect(words.stdout).toMatch(
      /^node n1 \(source; encap.*^node n2 \(destination;.*^delivered on node n2 to pod shop\/c/ms,
    );
    for (const node of cluster.lab.nodes) expect(await traceFlowsOn(node)).toEqual([]);
  });

  test("a policy on the other node is named, and the exit status is that of a drop", async () => {
    const run = await trace("maintainer", "shop/a", "shop/closed", "--inject", "--port", "81", "-o", "json");
    expect(run.status).toBe(1);
    expect(told(run).verdict).toMatchObject({ t: "dropped", node: "n2", policies: ["x/web-only"] });
  });

  test("who may only look begins no trace", async () => {
    const run = await trace("viewer", "shop/a", "shop/c", "--inject");
    expect([run.status, run.stdout]).toEqual([2, ""]);
    expect(run.stderr).toContain('Cannot get a token of the account "pipette-operator-write"');
  });

  test("a pod that nobody knows is told so", async () => {
    const run = await trace("maintainer", "shop/a", "shop/nobody", "--inject");
    expect([run.status, run.stderr]).toEqual([
      3,
      'Cannot trace packets: there is no pod and no service "shop/nobody"\n',
    ]);
  });
});

/** What comes to a node's address of the test's own network goes to the agent in the node's namespace. */
function wayTo(node: LabNode): Disposable {
  type End = Socket<{ other?: End; early: Uint8Array[] }>;
  const ends = new Set<End>();
  const pipe = {
    data: ({ data: { other, early } }: End, chunk: Uint8Array) =>
      void (other === undefined ? early.push(chunk) : other.write(chunk)),
    close: (end: End) => {
      ends.delete(end);
      end.data.other?.end();
    },
    error: (end: End) => void end.end(),
  };
  const listener = Bun.listen<{ other?: End; early: Uint8Array[] }>({
    hostname: seenAt(node.number),
    port,
    socket: {
      ...pipe,
      open: (end) => {
        end.data = { early: [] };
        ends.add(end);
        const opening = node.namespace.within(() =>
          Bun.connect<{ other?: End; early: Uint8Array[] }>({
            hostname: node.addresses[0],
            port,
            data: { other: end, early: [] },
            socket: pipe,
          }),
        );
        opening.then(
          (other) => {
            ends.add(other);
            end.data.other = other;
            for (const chunk of end.data.early.splice(0)) other.write(chunk);
          },
          () => end.end(),
        );
      },
    },
  });
  return {
    [Symbol.dispose]: () => {
      listener.stop(true);
      for (const end of ends) end.terminate();
    },
  };
}
