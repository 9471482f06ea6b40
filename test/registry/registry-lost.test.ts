import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ScriptedApiServer } from "../fakes/kubernetes/scripted-api-server.ts";
import { type AgentHome, type AgentProcess, eventually } from "../support/agent-process.ts";
import { Certificates } from "../support/certificates.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { pipette, registryHome } from "./registry-home.ts";

describeWith("a node that loses its registry", ["root", "nft", "etcd"], () => {
  let sandbox: NetworkSandbox;
  let stack: AsyncDisposableStack;
  let home: AgentHome;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    sandbox = stack.use(await NetworkSandbox.enter("pt-rl-"));
    await sandbox.node("ip address add 192.0.2.1/24 dev lo");
  });
  afterEach(() => stack.disposeAsync());

  const inHome = (registry: (home: AgentHome) => object): AgentHome => {
    home = stack.use(registryHome(registry));
    return home;
  };
  const status = () => pipette(home, "status", "--socket", home.socket);

  /** In the status, in words and for programs, and in what the doctor says; a probe takes no offence. */
  async function tellsOf(what: string, reason: RegExp): Promise<void> {
    let lines: readonly string[] = [];
    const look = async (): Promise<readonly string[]> => {
      const { stdout } = await status();
      lines = stdout.split("\n").filter((line) => line.startsWith(`registry: cannot ${what} since `));
      return lines;
    };
    await expect.poll(look).toContainEqual(expect.stringMatching(reason));
    expect(lines[0]).toMatch(/^registry: cannot [^:]* since \d{4}-\d\d-\d\dT[\d:.]+Z \(\d+s\): /);
    const said = await status();
    expect([said.status, said.stdout.includes("no problems")]).toEqual([1, false]);
    expect((await pipette(home, "status", "--socket", home.socket, "--readiness")).status).toBe(0);
    const json = JSON.parse((await pipette(home, "status", "--socket", home.socket, "--json")).stdout);
    expect(json.status.state).toBe("ready");
    const trouble = json.status.registryTroubles.find((each: { what: string }) => each.what === what);
    expect(trouble).toEqual({ what, reason: expect.stringMatching(reason), sinceMs: expect.any(Number) });
    expect(Math.abs(Date.now() - trouble.sinceMs)).toBeLessThan(60_000);
    const { findings } = JSON.parse((await pipette(home, "doctor", "--once", "--json")).stdout);
    expect(findings.map(({ code }: { code: string }) => code)).toContain("registry-lost");
  }

  async function isWell(agent: AgentProcess): Promise<void> {
    await eventually(async () => (await home.status()).registryTroubles.length === 0, "its end");
    await agent.logged(({ message, lastedMs }) => message === "the registry works again" && Number(lastedMs) >= 0);
    expect(await status()).toMatchObject({ status: 0, stdout: expect.stringMatching(/^no problems$/m) });
  }

  test("etcd that is killed", async () => {
    const etcd = stack.use(await EtcdCluster.start());
    inHome(() => ({ type: "etcd", endpoints: etcd.endpoints }));
    const agent = await home.start();
    await etcd.signal(0, "SIGKILL");
    const list = pipette(home, "nodes", "list");
    await tellsOf('follow the keys below "/pipette/v1/nodes/"', /ECONNREFUSED|connect|reset|ended/i);
    // The agent's word counts also where it is a bad one.
    const said = await list;
    expect([said.status, said.stderr]).toEqual([1, expect.stringMatching(/^Cannot list the nodes in [^\n]*$/)]);
    await etcd.startMember(0);
    await isWell(agent);
  });

  test("a file of nodes with a fault in it, and one that is gone", async () => {
    let file = "";
    inHome(({ directory }) => {
      file = join(directory, "nodes.yaml");
      return { type: "static", file };
    });
    const sound = JSON.stringify({ nodes: [{ name: "here", addresses: ["192.0.2.1"], subnets: ["10.79.0.0/24"] }] });
    writeFileSync(file, sound);
    const agent = await home.start();
    writeFileSync(file, sound.replace("10.79.0.0/24", "10.79.0.0/240"));
    await tellsOf("take what stands there", /10\.79\.0\.0\/240/);
    writeFileSync(file, sound.replace("addresses", "adresses"));
    await tellsOf("take what stands there", /adresses/);
    const list = await pipette(home, "nodes", "list");
    // One line, of which nothing is escaped.
    expect([list.status, list.stderr]).toEqual([
      1,
      expect.stringMatching(/^Cannot [^\n\\]*"nodes\[0\]\.adresses"[^\n\\]*$/),
    ]);
    writeFileSync(file, sound);
    await isWell(agent);
  });

  test.each([
    [401, "Unauthorized"],
    [403, 'nodes is forbidden: User "system:serviceaccount:pipette" cannot list resource "nodes"'],
  ])("an API server that answers %s", async (code, message) => {
    const server = stack.use(await ScriptedApiServer.start());
    server.put("here", ["10.79.0.0/24"], "192.0.2.1");
    inHome(() => ({ type: "kubernetes", server: server.url }));
    const agent = await home.start();
    server.refusal = { status: code, message };
    server.endWatches();
    await tellsOf("follow the nodes", new RegExp(`answers ${code}: ${message.slice(0, 20)}`));
    server.refusal = undefined;
    // No event comes and no bookmark: that the watch stands is enough.
    await isWell(agent);
  });

  test("an API server whose certificate is another's, and one that cannot be reached", async () => {
    const { directory } = inHome(({ directory }) => ({
      type: "kubernetes",
      server: "https://127.0.0.1:1",
      token: join(directory, "token"),
      ca: join(directory, "ca.pem"),
    }));
    const certificates = new Certificates(directory);
    await Promise.all([certificates.make("ca"), certificates.make("other")]);
    await certificates.make("server", "ca", "127.0.0.1");
    const { cert, key } = certificates.pair("server");
    const server = await ScriptedApiServer.start({ cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") });
    stack.use(server);
    server.put("here", ["10.79.0.0/24"], "192.0.2.1");
    writeFileSync(certificates.file("token"), "of-the-test", { mode: 0o600 });
    writeFileSync(home.configFile, readFileSync(home.configFile, "utf8").replace("https://127.0.0.1:1", server.url));
    const agent = await home.start();
    const ca = readFileSync(certificates.file("ca.pem"));
    copyFileSync(certificates.file("other.pem"), certificates.file("ca.pem"));
    server.endWatches();
    await tellsOf("follow the nodes", /certificate|self.signed|verify/i);
    writeFileSync(certificates.file("ca.pem"), ca);
    await isWell(agent);
    await server[Symbol.asyncDispose]();
    await tellsOf("follow the nodes", /connect|refused|closed/i);
  });

  test("what only the agent can ask is asked of the agent; without one it is asked for itself, with a word", async () => {
    const etcd = stack.use(await EtcdCluster.start());
    inHome(() => ({ type: "etcd", endpoints: etcd.endpoints }));
    const agent = await home.start();
    await pipette(home, "nodes", "register", "there", "--uid", "of-there", "--address", "192.0.2.2");
    await eventually(async () => (await pipette(home, "nodes", "list")).stdout.includes("ready"), "its sign of life");
    await pipette(home, "tenants", "global", "shop");
    // As on a node whose agent has its place in a pod: nobody else reaches the registry.
    const reachable = readFileSync(home.configFile, "utf8");
    writeFileSync(home.configFile, reachable.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, "http://127.0.0.1:1"));
    const nodes = await pipette(home, "nodes", "list");
    expect(nodes).toMatchObject({ status: 0, stderr: "" });
    expect(nodes.stdout).toMatch(/^here +ready +192\.0\.2\.1 +10\.128\.0\.0\/23 /m);
    const json = JSON.parse((await pipette(home, "nodes", "list", "--json")).stdout);
    expect(json).toMatchObject({
      registry: expect.stringContaining(String(etcd.endpoints[0])),
      revision: expect.any(Number),
    });
    expect(json.nodes.map(({ name }: { name: string }) => name)).toEqual(["here", "there"]);
    expect((await pipette(home, "tenants", "list")).stdout).toMatch(/^shop +0$/m);
    const codes = async (): Promise<readonly string[]> => {
      const { findings } = JSON.parse((await pipette(home, "doctor", "--once", "--json")).stdout);
      return findings.map(({ code }: { code: string }) => code);
    };
    expect(new Set(await codes())).toEqual(new Set(["registry-rights"]));

    await agent.end();
    writeFileSync(home.configFile, reachable);
    expect(await pipette(home, "nodes", "list")).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("there"),
      stderr: `asking the registry without the agent: no agent serves "${home.socket}"`,
    });
    expect(await codes()).not.toContain("registry-unreachable");
  });
});
