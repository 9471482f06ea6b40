import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleCommand } from "../../agent/commands/bundle/bundle-command.ts";
import { whyCommand } from "../../agent/commands/why/why-command.ts";
import { getCommand } from "../../operator/mod.ts";
import { type BundleIndex, nodeKinds, readNodeDocument } from "../../shared/documents/mod.ts";
import { runAt, type TerminalRun } from "../fakes/terminal-run.ts";
import { AgentHome, type AgentProcess, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

/** Planted where an operator's node has them. */
const secrets = {
  environment: "environment-swordfish-1",
  args: "args-swordfish-2",
  log: "log-swordfish-3",
  jwt: "eyJhbGciOiJSUzI1NiJ9.eyJzd29yZGZpc2giOiI0In0.c3dvcmRmaXNoLWZvdXI",
  file: "file-swordfish-5",
  configuration: "yaml-swordfish-6",
  url: "url-swordfish-7",
  pem: "cGVtLXN3b3JkZmlzaC04",
};

describeWith("a support bundle of a node", ["root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let home: AgentHome;
  let agent: AgentProcess;

  beforeAll(async () => {
    const sandbox = stack.use(await NetworkSandbox.enter("pt-bu-"));
    home = stack.use(new AgentHome());
    agent = await home.start({ PIPETTE_NODE_NAME: "here", ETCD_PASSWORD: secrets.environment });
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=cart;MY_KEY=${secrets.args}`;
    resultOf(await home.cmd("cmdAdd", "s1", { netns: await sandbox.addPod("s1"), args }));
    // The agent goes on as it began: what a bundle reads is the file.
    const remarks = `\n# password: ${secrets.configuration}\n# was https://root:${secrets.url}@10.0.0.1\n`;
    appendFileSync(home.configFile, remarks);
    const lines = [
      agent.stderr,
      JSON.stringify({ level: "error", message: "x", error: `401 for Bearer ${secrets.log}` }),
      JSON.stringify({ level: "warn", message: `it sent ${secrets.jwt} and ${secrets.file}` }),
      `-----BEGIN PRIVATE KEY-----\n${secrets.pem}\n-----END PRIVATE KEY-----`,
    ];
    writeFileSync(join(home.directory, "agent.log"), lines.join("\n"));
  });
  afterAll(() => stack.disposeAsync());

  async function bundle(
    name: string,
    ...more: readonly string[]
  ): Promise<TerminalRun & { readonly directory: string }> {
    const directory = join(home.directory, name);
    mkdirSync(directory);
    const words = ["--socket", home.socket, "--config", home.configFile, "--log", join(home.directory, "agent.log")];
    const env = { HOME: home.directory, MY_TOKEN: secrets.file };
    const ran = await runAt("pipette bundle", bundleCommand, ["-o", `${directory}.tar.gz`, ...words, ...more], { env });
    expect(Bun.spawnSync(["tar", "-xzf", `${directory}.tar.gz`, "-C", directory]).exitCode).toBe(0);
    return { ...ran, directory };
  }
  const filesIn = (directory: string): string[] =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  const indexIn = (directory: string): BundleIndex => JSON.parse(readFileSync(join(directory, "index.json"), "utf8"));

  test("has its documents, files and dumps, with checksums, for one user alone, and none of the secrets", async () => {
    const { directory, stdout } = await bundle("whole");
    expect(stdout).toMatch(/whole\.tar\.gz: \d+ files of 1 node\n$/);
    expect(statSync(`${directory}.tar.gz`).mode & 0o777).toBe(0o600);
    const index = indexIn(directory);
    expect(index.nodes).toEqual(["here"]);
    const paths = index.files.map(({ path }) => path);
    for (const kind of nodeKinds.filter((one) => one !== "flows")) expect(paths).toContain(`nodes/here/${kind}.json`);
    for (const file of ["agent.log", "host/links.txt", "host/nftables.txt", "versions.json"])
      expect(paths).toContain(`nodes/here/${file}`);
    expect(Bun.spawnSync(["sha256sum", "--quiet", "-c", "SHA256SUMS"], { cwd: directory }).exitCode).toBe(0);
    const pods = readNodeDocument("pods", "here", readFileSync(join(directory, "nodes/here/pods.json")), "the bundle");
    expect(pods.pods).toMatchObject([{ podNamespace: "shop", podName: "cart", containerId: "s1" }]);
    const calls = readNodeDocument(
      "calls",
      "here",
      readFileSync(join(directory, "nodes/here/calls.json")),
      "the bundle",
    );
    expect(calls.calls).toMatchObject([
      {
        verb: "ADD",
        podName: "cart",
        code: 0,
        phases: ["queued", "ipam", "interface", "port"].map((phase) => ({ phase })),
      },
    ]);
    const all = filesIn(directory).map((file) => [file, readFileSync(file, "utf8")] as const);
    for (const [name, secret] of Object.entries(secrets))
      expect([name, all.filter(([, text]) => text.includes(secret)).map(([file]) => file)]).toEqual([name, []]);
    // They were there to be found.
    expect(readFileSync(join(directory, "nodes/here/agent.log"), "utf8")).toContain("401 for Bearer [left out]");
  });

  test("reads back as the node itself was", async () => {
    const file = join(home.directory, "whole.tar.gz");
    const live = await runAt("pipette get", getCommand, ["pods", "--socket", home.socket, "-o", "json"]);
    const read = await runAt("pipette get", getCommand, ["pods", "--bundle", file, "-o", "json"]);
    expect(read).toMatchObject({ status: 0, stderr: "" });
    expect(JSON.parse(read.stdout).pods).toEqual(JSON.parse(live.stdout).pods);
    const why = await runAt("pipette why", whyCommand, ["shop/cart", "--bundle", file]);
    expect(why).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("shop/cart has its network (10.78.0.2/16"),
    });
  });

  test("by an API server has this machine's files under no other node's name", async () => {
    const own = hostname().toLowerCase();
    const nodes = ["a-first"];
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ url }) =>
        new URL(url).pathname === "/api/v1/namespaces/kube-system/pods"
          ? Response.json({
              metadata: { resourceVersion: "1" },
              items: nodes.map((nodeName) => ({ metadata: { name: `agent-${nodeName}` }, spec: { nodeName } })),
            })
          : new Response("no", { status: 404 }),
    });
    const kubeconfig = join(home.directory, "kubeconfig");
    const cluster = { name: "c", cluster: { server: server.url.origin } };
    const contexts = [{ name: "c", context: { cluster: "c", user: "u" } }];
    const users = [{ name: "u", user: { token: "none" } }];
    writeFileSync(kubeconfig, JSON.stringify({ clusters: [cluster], contexts, users, "current-context": "c" }));
    const without = "the API server knows no agent of this machine, wanted --node or --all";
    const words = ["--kubeconfig", kubeconfig, "--config", home.configFile, "--log", join(home.directory, "agent.log")];
    const run = async (name: string): Promise<TerminalRun & { readonly index: BundleIndex }> => {
      const file = join(home.directory, `${name}.tar.gz`);
      const ran = await runAt("pipette bundle", bundleCommand, ["-o", file, ...words], {
        env: { HOME: home.directory },
      });
      const { stdout } = Bun.spawnSync(["tar", "-xzOf", file, "index.json"]);
      return { ...ran, index: JSON.parse(stdout.toString()) };
    };
    const unknown = await run("unknown");
    expect([unknown.status, unknown.index.nodes]).toEqual([1, [own]]);
    expect(unknown.index.failures).toContainEqual({ item: "documents", reason: without });
    const all = [...unknown.index.files.map(({ path }) => path), ...unknown.index.failures.map(({ item }) => item)];
    expect(all.filter((path) => path.includes("a-first") || path.startsWith("cluster/"))).toEqual([]);
    expect(all).toContain(`nodes/${own}/agent.log`);
    nodes.push(own);
    const known = await run("known");
    expect(known.index.nodes).toEqual([own]);
    expect(known.stderr).not.toContain(without);
    expect(known.index.failures.map(({ item }) => item)).toContain(`nodes/${own}/pods.json`);
  });

  test("takes each node once, and no name that its readers refuse", async () => {
    const words = ["--socket", home.socket, "--node", "here", "--node", "here"];
    const file = join(home.directory, "once.tar.gz");
    const { stdout } = await runAt("pipette bundle", bundleCommand, ["-o", file, ...words]);
    expect(stdout).toContain("of 1 node\n");
    const refused = await runAt("pipette bundle", bundleCommand, ["--node", "Node-1"]);
    expect(refused.stderr).toContain('"Node-1", wanted the name of a node');
  });

  test("of a node whose agent is dead has what the host and the database know, and says what it lacks", async () => {
    await agent.end("SIGKILL");
    const { directory, status, stderr } = await bundle("dead");
    expect(status).toBe(1);
    expect(stderr).toContain(`without documents: Cannot show the node of this node: nobody serves "${home.socket}"`);
    const { files, failures, nodes } = indexIn(directory);
    const [node = ""] = nodes;
    expect(failures.map(({ item }) => item)).toContain("documents");
    const leases = readNodeDocument("leases", node, readFileSync(join(directory, `nodes/${node}/leases.json`)), "it");
    expect(leases.leases).toMatchObject([{ podName: "cart", state: "allocated" }, { podName: "cart" }]);
    expect(files.map(({ path }) => path)).toContain(`nodes/${node}/findings.json`);
    expect(readFileSync(join(directory, "index.md"), "utf8")).toContain("| documents | Cannot show the node");
  });
});
