import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleCommand } from "../../agent/commands/bundle/bundle-command.ts";
import { doctorCommand } from "../../agent/commands/doctor/doctor-command.ts";
import { statusCommand } from "../../agent/commands/status/status-command.ts";
import { whyCommand } from "../../agent/commands/why/why-command.ts";
import { getCommand } from "../../operator/mod.ts";
import { type BundleIndex, nodeKinds } from "../../shared/documents/mod.ts";
import { runAt, type TerminalRun } from "../fakes/terminal-run.ts";
import type { AgentHome, AgentProcess } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { address, agentPort, deadPort, hostilePort, OperatorCluster, operatorNeeds } from "./operator-cluster.ts";
import { addNode } from "./registry-node.ts";

const kubeletPort = 10_250;
/** Planted where a cluster has them. */
const secrets = {
  log: "log-swordfish-1",
  previous: "previous-swordfish-2",
  environment: "environment-swordfish-3",
  configuration: "configuration-swordfish-4",
  args: "args-swordfish-5",
  event: "event-swordfish-6",
};
const endOf = (containerID: string) => ({ terminated: { exitCode: 1, containerID, reason: "Error" } });

describeWith("a bundle of a cluster, at a real API server with two real agents", operatorNeeds, () => {
  let cluster: OperatorCluster;
  let viewer: string;
  let first: { home: AgentHome; agent: AgentProcess };
  let second: { home: AgentHome; agent: AgentProcess };
  let kubelet: AsyncDisposable;
  /** Of the hostile agent's log: without an end. */
  let flood: ReturnType<typeof setInterval> | undefined;

  beforeAll(async () => {
    cluster = await OperatorCluster.start("pt-ba-");
    const { server } = cluster;
    for (const name of ["node-a", "node-b", "node-c", "node-d", "node-e"]) {
      await addNode(server, name, address, undefined);
      const daemonEndpoints = { kubeletEndpoint: { Port: kubeletPort } };
      await server.ask("PATCH", `/api/v1/nodes/${name}/status`, { status: { daemonEndpoints } });
    }
    const running = { name: "agent", image: "none", imageID: "", ready: true, state: { running: {} } };
    const once = { containerStatuses: [{ ...running, restartCount: 0 }] };
    const again = { containerStatuses: [{ ...running, restartCount: 1, lastState: endOf("containerd://1") }] };
    await cluster.agentPod("node-a", agentPort, again);
    await cluster.agentPod("node-b", agentPort, once, "192.0.2.2");
    await cluster.agentPod("node-c", hostilePort, once);
    await cluster.agentPod("node-d", deadPort, { ...once, conditions: [{ type: "Ready", status: "False" }] });
    first = await cluster.agent("node-a", agentPort);
    second = await cluster.agent("node-b", agentPort, await cluster.place("192.0.2.2"));
    await cluster.addPod(first.home, "s1", "web");
    await cluster.addPod(second.home, "s2", "db");
    kubelet = await cluster.listen(kubeletPort, (request, response) => {
      const url = new URL(request.url ?? "/", "https://kubelet");
      const node = url.pathname.split("/")[3]?.replace("agent-of-", "");
      response.writeHead(200, { "content-type": "text/plain" });
      if (node === "node-c") {
        flood = setInterval(() => response.write("x".repeat(256 * 1024)), 1);
        request.socket.on("close", () => clearInterval(flood));
        return;
      }
      const isPrevious = url.searchParams.get("previous") === "true";
      const said = isPrevious ? `it ended; token: ${secrets.previous}` : `401 for Bearer ${secrets.log}`;
      response.end(`${(node === "node-b" ? second : first).agent.stderr}\n${said}\n`);
    });
    const workload = "/apis/apps/v1/namespaces/kube-system/daemonsets/pipette-agent";
    const env = [{ name: "ETCD_PASSWORD", value: secrets.environment }];
    const patch = { spec: { template: { spec: { containers: [{ name: "agent", image: "none", env }] } } } };
    expect((await server.ask("PATCH", workload, patch)).status).toBe(200);
    const map = "/api/v1/namespaces/kube-system/configmaps/pipette-agent";
    const data = { "agent.yaml": `# password: ${secrets.configuration}\nnetworks: []\n` };
    expect((await server.ask("PATCH", map, { data })).status).toBe(200);
    await server.create("/api/v1/namespaces/kube-system/events", {
      metadata: { name: "e1", namespace: "kube-system" },
      involvedObject: { kind: "Pod", namespace: "kube-system", name: "agent-of-node-a" },
      ...{ type: "Warning", reason: "BackOff", message: `it said password=${secrets.event}` },
    });
    viewer = await cluster.person("viewer", ["pipette-viewer"]);
  }, 240_000);
  afterAll(async () => {
    clearInterval(flood);
    await kubelet?.[Symbol.asyncDispose]();
    await cluster?.[Symbol.asyncDispose]();
  });

  interface Made extends TerminalRun {
    readonly directory: string;
    readonly file: string;
    readonly index: BundleIndex;
  }

  async function bundle(name: string, ...more: readonly string[]): Promise<Made> {
    const directory = join(cluster.directory, name);
    const file = `${directory}.tar.gz`;
    mkdirSync(directory);
    const way = more.includes("--kubeconfig") ? [] : ["--kubeconfig", viewer];
    const words = ["-o", file, ...way, "--config", join(cluster.directory, "none"), ...more];
    const ran = await runAt("pipette bundle", bundleCommand, words);
    expect(Bun.spawnSync(["tar", "-xzf", file, "-C", directory]).exitCode).toBe(0);
    const index: BundleIndex = JSON.parse(readFileSync(join(directory, "index.json"), "utf8"));
    // Of no file there is nothing to check.
    const sums = index.files.length === 0 ? ["true"] : ["sha256sum", "--quiet", "-c", "SHA256SUMS"];
    expect(Bun.spawnSync(sums, { cwd: directory }).exitCode).toBe(0);
    return { ...ran, directory, file, index };
  }
  const pathsOf = ({ index }: Made) => index.files.map(({ path }) => path);
  const failureOf = ({ index }: Made, item: string) => index.failures.find((one) => one.item === item)?.reason;
  let whole: Made;

  test("has each node's documents, pods and logs; who is dead, hostile or not there is named, and takes nothing from the others", async () => {
    cluster.hostile.answer = (path) => {
      if (path.startsWith("/v1/documents/node")) {
        const { document, ...head } = JSON.parse(nodeOfC);
        return { body: JSON.stringify({ ...head, document }) };
      }
      if (path.startsWith("/v1/documents/pods")) return { body: new Uint8Array(6 * 1024 * 1024).fill(0x20) };
      if (path.startsWith("/v1/documents/leases")) return { body: "<html>" };
      if (path.startsWith("/v1/documents/flows")) return { body: "[".repeat(100_000) };
      return path.startsWith("/v1/documents/calls") ? undefined : { status: 500, body: "{}" };
    };
    whole = await bundle("whole", "--all");
    expect([whole.status, whole.index.nodes]).toEqual([1, ["node-a", "node-b", "node-c", "node-d"]]);
    expect(whole.stdout).toMatch(/whole\.tar\.gz: \d+ files of 4 nodes\n$/);
    // What is long work tells how far it is.
    expect(whole.stderr).toMatch(/^\d+ of \d+ \(\d+ %\) parts collected\n/);
    const paths = pathsOf(whole);
    expect(whole.index.failures.filter(({ item }) => item.includes("node-a")).map(({ item }) => item)).toEqual([
      "nodes/node-a/flows.json",
    ]);
    for (const node of ["node-a", "node-b"]) {
      // A kernel bridge has no flows.
      for (const kind of nodeKinds.filter((one) => one !== "flows"))
        expect(paths).toContain(`nodes/${node}/${kind}.json`);
      for (const file of ["agent-pod.json", "agent-pod-events.json", "agent-pod.log"])
        expect(paths).toContain(`nodes/${node}/${file}`);
    }
    // Only what has ended before has a log of then, and lacking it is no failure.
    expect(paths.filter((path) => path.endsWith("-previous.log"))).toEqual(["nodes/node-a/agent-pod-previous.log"]);
    for (const name of ["nodes", "daemonsets", "deployments", "pipette-agent-configuration"])
      expect(paths).toContain(`cluster/${name}.json`);
    expect(failureOf(whole, "nodes/node-c/pods.json")).toMatch(/has more than \d+ bytes/);
    expect(failureOf(whole, "nodes/node-c/leases.json")).toContain("its answer cannot be read");
    expect(failureOf(whole, "nodes/node-c/calls.json")).toBe("it was not there after 15000 ms");
    expect(failureOf(whole, "nodes/node-c/agent-pod.log")).toMatch(/more than \d+ bytes|was not there after/);
    const dead = nodeKinds.map((kind) => failureOf(whole, `nodes/node-d/${kind}.json`));
    expect(new Set(dead).size).toBe(1);
    expect(dead[0]).toContain('node "node-d" cannot be reached by the API server');
    expect(paths).toContain("nodes/node-d/agent-pod.log");
    expect(failureOf(whole, "nodes/node-e")).toBe(
      'no pod of an agent is on it, wanted "pipette bundle" on the node itself',
    );
  }, 120_000);

  test("has none of the secrets, and says where they were", () => {
    const files = readdirSync(whole.directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    for (const [name, secret] of Object.entries(secrets))
      expect([name, files.filter((file) => readFileSync(file, "utf8").includes(secret))]).toEqual([name, []]);
    const log = readFileSync(join(whole.directory, "nodes/node-a/agent-pod.log"), "utf8");
    expect(log).toMatch(/^==> agent <==\n.*401 for Bearer \[left out\]/s);
    expect(log).toContain("metrics are served");
    expect(readFileSync(join(whole.directory, "nodes/node-a/agent-pod-previous.log"), "utf8")).toContain("it ended");
    expect(statSync(whole.file).mode & 0o777).toBe(0o600);
  });

  test("reads back in get, status, doctor and why", async () => {
    const read = (name: string, command: Parameters<typeof runAt>[1], ...args: string[]) =>
      runAt(`pipette ${name}`, command, [...args, "--bundle", whole.file]);
    const pods = await read("get", getCommand, "pods", "-A");
    expect(pods.stdout).toMatch(/^NODE .*\nnode-a +shop\/web .*\nnode-b +shop\/db .*\n$/);
    expect([pods.status, pods.stderr.trimEnd().split("\n").length]).toEqual([2, 2]);
    expect(pods.stderr).toContain('node "node-d" cannot be reached by the API server');
    const status = await read("status", statusCommand, "-A");
    expect(status.stdout).toMatch(/^NODE +STATE .*\nnode-a +ready .*\nnode-b +ready /);
    const doctor = await read("doctor", doctorCommand, "--node", "node-b");
    expect(doctor.stdout).toMatch(/2 leases, 1 interface of pods: /);
    const why = await read("why", whyCommand, "shop/db");
    expect([why.status, why.stdout]).toEqual([0, expect.stringMatching(/^shop\/db has its network \(10\.78\./)]);
    expect((await read("why", whyCommand, "shop/none")).status).toBe(2);
    expect((await read("get", getCommand, "nodes")).stdout.split("\n").length).toBe(7);
  }, 60_000);

  test("is made also while every agent is dead, of what the API server knows", async () => {
    await Promise.all([first.agent.end("SIGKILL"), second.agent.end("SIGKILL")]);
    cluster.hostile.answer = () => ({ status: 500, body: "{}" });
    const dead = await bundle("dead", "--all");
    expect(dead.status).toBe(1);
    const paths = pathsOf(dead);
    expect(
      paths.filter((path) => nodeKinds.some((kind) => path.endsWith(`/${kind}.json`) && path.startsWith("nodes/"))),
    ).toEqual([]);
    for (const node of ["node-a", "node-b", "node-d"]) expect(paths).toContain(`nodes/${node}/agent-pod.log`);
    const get = await runAt("pipette get", getCommand, ["nodes", "--bundle", dead.file]);
    expect([get.status, get.stdout]).toEqual([0, expect.stringContaining("node-a")]);
    const why = await runAt("pipette why", whyCommand, ["shop/db", "--bundle", dead.file, "--node", "node-b"]);
    expect([why.status, why.stdout]).toEqual([1, expect.stringContaining("cannot be reached by the API server")]);
  }, 120_000);

  test("is refused in a sentence: both ways, no rights, a file that is there", async () => {
    const run = (...args: string[]) => runAt("pipette bundle", bundleCommand, args);
    const both = await run("--all", "--node", "node-a", "-o", join(cluster.directory, "x"), "--kubeconfig", viewer);
    expect([both.status, both.stderr]).toEqual([1, expect.stringContaining('"--all" and "--node" are both there')]);
    writeFileSync(join(cluster.directory, "mine"), "mine");
    const there = await run("--all", "-o", join(cluster.directory, "mine"), "--kubeconfig", viewer);
    expect([there.status, there.stderr]).toEqual([
      1,
      expect.stringMatching(/^Cannot write the bundle ".*mine": it is there already\n$/),
    ]);
    const nobody = await cluster.person("nobody", []);
    const none = await bundle("none", "--all", "--kubeconfig", nobody);
    expect([none.status, none.index.nodes]).toEqual([1, []]);
    expect(failureOf(none, "agents")).toMatch(/^Cannot list pods in namespace "kube-system": .*403/);
  }, 60_000);
});

const nodeOfC = JSON.stringify({
  ...{ revision: "1", atMs: 1 },
  document: {
    ...{ kind: "node", version: 1, node: "node-c", agentVersion: "1.0.0", pid: 1, startedAtMs: 1, state: "ready" },
    ...{ system: "linux", dataPath: "bridge", networks: [], callsInFlight: 0, departing: 0, cluster: "", policies: "" },
    ...{ services: "", problems: [], registryTroubles: [], configuration: [], shortcomings: [], refusals: [] },
    ...{ policyDifferences: [], serviceDifferences: [], servicesFault: "" },
  },
});
