import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { doctorCommand } from "../../agent/commands/doctor/doctor-command.ts";
import { statusCommand } from "../../agent/commands/status/status-command.ts";
import { traceCommand } from "../../agent/commands/trace/trace-command.ts";
import { getCommand, logLevelCommand } from "../../operator/mod.ts";
import { runAt, type TerminalRun } from "../fakes/terminal-run.ts";
import type { AgentHome, AgentProcess } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import type { ApiServer } from "./api-server.ts";
import {
  address,
  deadPort,
  type Hostile,
  hostilePort,
  OperatorCluster,
  operatorNeeds,
  agentPort as port,
} from "./operator-cluster.ts";
import { addNode } from "./registry-node.ts";

describeWith("an operator with a kubeconfig, at a real API server", operatorNeeds, () => {
  let cluster: OperatorCluster;
  let directory: string;
  let hostile: Hostile;
  let server: ApiServer;
  let home: AgentHome;
  let agent: AgentProcess;

  beforeAll(async () => {
    cluster = await OperatorCluster.start("pt-ok-");
    ({ directory, hostile, server } = cluster);
    for (const name of ["node-a", "node-b", "node-c"]) await addNode(server, name, address, undefined);
    await cluster.agentPod("node-a", port);
    await cluster.agentPod("node-b", deadPort);
    await cluster.agentPod("node-c", hostilePort);
    ({ home, agent } = await cluster.agent("node-a", port));
    await cluster.addPod(home, "s1", "web");
    await cluster.person("viewer", ["pipette-viewer"]);
    await cluster.person("maintainer", ["pipette-viewer", "pipette-maintainer"]);
    await cluster.person("nobody", []);
  }, 240_000);
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const get = (who: string, ...args: string[]): Promise<TerminalRun> =>
    runAt("pipette get", getCommand, [...args, "--kubeconfig", join(directory, who)]);

  test("nodes are there with their agents", async () => {
    const { status, stdout } = await get("viewer", "nodes");
    expect(status).toBe(0);
    const rows = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/).slice(0, 3));
    expect(rows).toEqual([
      ["NAME", "READY", "AGENT"],
      ...["node-a", "node-b", "node-c"].map((name) => [name, "yes", "ready"]),
    ]);
  });

  test("a node's pods are the same as at its socket", async () => {
    const far = await get("viewer", "pods", "--node", "node-a", "-o", "json");
    expect([far.status, far.stderr]).toEqual([0, ""]);
    const near = await runAt("pipette get", getCommand, ["pods", "-o", "json", "--socket", home.socket]);
    expect(far.stdout).toBe(near.stdout);
    expect(JSON.parse(far.stdout)).toMatchObject({ node: "node-a", pods: [{ podName: "web" }] });
  });

  test.each(["node", "leases", "addresses", "services", "policies", "findings", "calls", "peers"])(
    "%s of a node",
    async (kind) => {
      const { stdout, stderr } = await get("viewer", kind, "--node", "node-a", "-o", "json");
      expect([stderr, JSON.parse(stdout)]).toEqual(["", expect.objectContaining({ kind, node: "node-a" })]);
    },
  );

  test("its status and what its doctor finds, in the words that they have there", async () => {
    const kubeconfig = ["--kubeconfig", join(directory, "viewer")];
    const status = await runAt("pipette status", statusCommand, ["--node", "node-a", ...kubeconfig]);
    expect([status.status, status.stderr]).toEqual([0, ""]);
    expect(status.stdout).toMatch(/^pipette agent .*data path bridge\n.*shop\/web\n.*no problems\n$/s);
    const doctor = await runAt("pipette doctor", doctorCommand, ["--node", "node-a", ...kubeconfig]);
    expect([doctor.status, doctor.stdout]).toEqual([0, expect.stringMatching(/leases?, 1 interface of pods: /)]);
    hostile.answer = () => ({ body: "<html>" });
    const all = await runAt("pipette status", statusCommand, kubeconfig);
    expect([all.status, all.stdout]).toEqual([
      2,
      expect.stringMatching(/^NODE +STATE .*\nnode-a +ready .* bridge .* 0\n$/),
    ]);
    expect(all.stderr.trimEnd().split("\n")).toEqual([
      expect.stringContaining('node "node-b" cannot be reached by the API server'),
      expect.stringMatching(/of node "node-c": its answer cannot be read/),
    ]);
    const listed = await runAt("pipette doctor", doctorCommand, ["-A", "-o", "json", ...kubeconfig]);
    expect(JSON.parse(listed.stdout)).toMatchObject({
      kind: "list",
      items: [{ kind: "doctor", node: "node-a" }],
      failures: [{ node: "node-b" }, { node: "node-c" }],
    });
    // As a plugin of kubectl it is about the cluster, also on a machine that has an agent.
    const asPlugin = await runAt("pipette status", statusCommand, [], {
      isKubectl: true,
      env: { KUBECONFIG: join(directory, "viewer") },
    });
    expect([asPlugin.status, asPlugin.stdout]).toEqual([2, expect.stringMatching(/^NODE +STATE .*\nnode-a +ready /)]);
    const repair = await runAt("pipette doctor", doctorCommand, ["--node", "node-a", "--repair", ...kubeconfig]);
    expect([repair.status, repair.stderr]).toEqual([2, expect.stringContaining("are for the node itself")]);
  });

  test("of several nodes one that fails is named, and the others are there", async () => {
    hostile.answer = () => ({ body: "<html>" });
    const { status, stdout, stderr } = await get("viewer", "pods", "-A");
    expect(status).toBe(2);
    expect(stdout).toMatch(/^NODE +POD .*\nnode-a +shop\/web/);
    const said = stderr.trimEnd().split("\n");
    expect(said).toEqual([
      expect.stringMatching(
        /^Cannot show the pods of node "node-b": node "node-b" cannot be reached by the API server/,
      ),
      expect.stringMatching(/^Cannot show the pods of node "node-c": its answer cannot be read/),
    ]);
    const json = JSON.parse((await get("viewer", "pods", "-A", "-o", "json")).stdout);
    expect(json).toMatchObject({ kind: "list", items: [{ node: "node-a" }], failures: [{ node: "node-b" }, {}] });
  });

  test("an agent gets a token for itself alone, which nobody else takes", async () => {
    hostile.headers = [];
    await get("viewer", "pods", "--node", "node-c");
    const [headers = {}] = hostile.headers;
    expect(headers).not.toHaveProperty("authorization");
    const token = String(headers["x-pipette-token"]);
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
    expect(claims).toMatchObject({
      aud: ["agent.pipette.io/node-c"],
      sub: "system:serviceaccount:kube-system:pipette-operator",
    });
    expect(claims.exp - claims.iat).toBeLessThanOrEqual(600);
    expect((await server.ask("GET", "/api/v1/nodes", undefined, token)).status).toBe(401);
    const other = await fetchAgent(token);
    expect(other.status).toBe(401);
  });

  test("a person without rights is told which, and an agent sees nobody then", async () => {
    hostile.headers = [];
    const { status, stdout, stderr } = await get("nobody", "pods", "--node", "node-c");
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/Cannot list pods in namespace "kube-system": the API server answers 403: .*default:nobody/);
    expect(hostile.headers).toEqual([]);
  });

  describe("of an agent that means harm", () => {
    const document = (pods: unknown, more: object = {}): string =>
      JSON.stringify({
        ...{ revision: "1", atMs: 1 },
        document: { kind: "pods", version: 1, node: "node-c", pods, omitted: 0, ...more },
      });
    const pod = { network: "n", containerId: "c", ifname: "eth0", hostIfname: "v", ownLease: true, addresses: [] };

    test.each<[string, Hostile["answer"], RegExp]>([
      ["what says it is another node", () => ({ body: document([], { node: "node-a" }) }), /it is about node "node-a"/],
      ["too much", () => ({ body: new Uint8Array(5 * 1024 * 1024).fill(0x20) }), /has more than \d+ bytes/],
      ["too deep", () => ({ body: `${"[".repeat(200_000)}` }), /nested more than 256 deep/],
      ["too many", () => ({ body: document(Array.from({ length: 5_001 }, () => pod)) }), /a list of 5001 entries/],
      ["nonsense", () => ({ body: '{"revision":7}' }), /answers nonsense: revision is 7/],
      ["401 again and again", () => ({ status: 401, body: "{}" }), /it is refused \(401\)/],
      [
        "an answer that is cut off",
        () => ({ body: '{"revision":"1","at', cut: true }),
        /Cannot show the pods of node "node-c"/,
      ],
    ])("%s is refused in a sentence", async (_, answer, wanted) => {
      hostile.answer = answer;
      hostile.headers = [];
      const { status, stdout, stderr } = await get("viewer", "pods", "--node", "node-c");
      expect([status, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(wanted);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
      expect(hostile.headers).toHaveLength(1);
    });

    test("control characters reach no terminal, in no form", async () => {
      const evil = "\u001b]0;owned\u0007\u202eweb\nfake  row";
      hostile.answer = () => ({ body: document([{ ...pod, podNamespace: evil, podName: evil, mac: evil }]) });
      for (const form of ["table", "wide", "json", "yaml"]) {
        const { status, stdout } = await get("viewer", "pods", "--node", "node-c", "-o", form);
        expect(status).toBe(0);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
        expect(stdout.replaceAll("\n", "")).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
        expect(stdout).not.toContain("\nfake");
      }
    });
  });

  test("who may look may not change what an agent logs; who may that, does", async () => {
    const level = (who: string, ...args: string[]): Promise<TerminalRun> =>
      runAt("pipette log-level", logLevelCommand, [...args, "--node", "node-a", "--kubeconfig", join(directory, who)]);
    expect(await level("viewer")).toEqual({ status: 0, stdout: "node-a  info\n", stderr: "" });
    const refused = await level("viewer", "debug");
    expect([refused.status, refused.stdout]).toEqual([2, ""]);
    expect(refused.stderr).toContain('Cannot get a token of the account "pipette-operator-write"');
    expect(await level("maintainer", "debug")).toEqual({ status: 0, stdout: "node-a  debug\n", stderr: "" });
    await agent.logged(({ message, to }) => message === "the log level changes" && to === "debug");
    expect((await level("viewer")).stdout).toBe("node-a  debug\n");
    const wrong = await level("maintainer", "loud");
    expect([wrong.status, wrong.stderr]).toEqual([2, expect.stringContaining('"loud"')]);
  });

  describe("a trace", () => {
    const trace = (who: string, ...args: string[]): Promise<TerminalRun> =>
      runAt("pipette trace", traceCommand, [...args, "--inject", "--kubeconfig", join(directory, who)]);
    const evil = "\u001b]0;owned\u0007\u202e";
    const pods = (name: string): string =>
      JSON.stringify({
        ...{ revision: "1", atMs: 1 },
        document: {
          ...{ kind: "pods", version: 1, node: "node-c", omitted: 0 },
          pods: name.endsWith("evil")
            ? [
                {
                  ...{ podNamespace: "shop", podName: "evil", network: "n", containerId: "c", ifname: "eth0" },
                  ...{ hostIfname: "v", ownLease: true, addresses: ["10.1.2.3/24"] },
                },
              ]
            : [],
        },
      });
    const told = { kind: "node-trace", version: 1, node: "node-c", session: "s", state: "looking", revision: 1 };
    const whole = { ...told, dataPath: evil, passed: 0, paused: false };
    const packet = (steps: unknown): object => ({
      ...{ id: "1", family: "IPv4", protocol: "icmp", source: "10.1.2.3", destination: "10.1.2.4", bytes: 1 },
      ...{ steps, ended: true },
    });
    const step = { component: "spoofGuard", action: "dropped", table: evil, atMs: 1, text: `${evil}\nfake row` };
    const answering =
      (answer: unknown): Hostile["answer"] =>
      (path) => {
        const { pathname, searchParams } = new URL(path, "https://agent");
        return { body: pathname === "/v1/trace" ? JSON.stringify(answer) : pods(searchParams.get("name") ?? "") };
      };

    test("wants the right of a maintainer, and a data path that follows packets", async () => {
      const viewer = await trace("viewer", "shop/web", "192.0.2.9");
      expect([viewer.status, viewer.stdout]).toEqual([2, ""]);
      expect(viewer.stderr).toContain('Cannot get a token of the account "pipette-operator-write"');
      const maintainer = await trace("maintainer", "shop/web", "192.0.2.9");
      expect([maintainer.status, maintainer.stdout]).toEqual([2, ""]);
      expect(maintainer.stderr).toContain('the data path "bridge" of node "node-a" follows no packets');
    });

    test.each<[string, unknown, RegExp]>([
      ["of another node", { ...whole, packets: [], node: "node-a" }, /it is about node "node-a"/],
      ["that is none", { revision: 7 }, /"kind" is missing/],
      [
        "of too many packets",
        { ...whole, packets: Array.from({ length: 17 }, () => packet([])) },
        /a list of 17 entries/,
      ],
      [
        "of too many steps",
        { ...whole, packets: [packet(Array.from({ length: 65 }, () => step))] },
        /a list of 65 entries/,
      ],
    ])("%s is refused in a sentence", async (_, answer, wanted) => {
      hostile.answer = answering(answer);
      const { status, stdout, stderr } = await trace("maintainer", "shop/evil", "10.1.2.4");
      expect([status, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(wanted);
    });

    test("brings no control characters to a terminal", async () => {
      hostile.answer = answering({ ...whole, packets: [packet([step])] });
      for (const form of ["table", "json", "yaml"]) {
        const { status, stdout } = await trace("maintainer", "shop/evil", "10.1.2.4", "-o", form);
        expect(status).toBe(1);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
        expect(stdout.replaceAll("\n", "")).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
        expect(stdout).not.toContain("\nfake");
      }
    });
  });

  /** As the API server would pass a question on. */
  async function fetchAgent(token: string): Promise<{ readonly status: number }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ readonly status: number }>();
    const { request } = await import("node:https");
    const options = {
      ...{ host: address, port, path: "/v1/documents/pods", rejectUnauthorized: false, agent: false },
      headers: { "x-pipette-token": token },
    };
    const asked = request(options, (answer) => {
      answer.resume();
      resolve({ status: answer.statusCode ?? 0 });
    });
    asked.on("error", reject);
    asked.end();
    return await promise;
  }
});
