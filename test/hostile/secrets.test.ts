import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { compileExecutables, executables, run, scratch, variables } from "../conformance/plugin.ts";
import { AgentHome } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";

const secret = "hunter2correcthorse";
const env = (verb: string, more: object = {}) =>
  variables(verb, { CNI_ARGS: `IgnoreUnknown=1;TOKEN=${secret};K8S_POD_TOKEN=${secret};K8S_POD_NAME=web`, ...more });

/** Secrets at every place of a configuration where Pipette knows no key. */
const withSecrets = {
  password: secret,
  runtimeConfig: { "io.example.credentials": { token: secret }, mac: "", portMappings: [] },
  prevResult: { cniVersion: "1.1.0", interfaces: [{ name: "eth9", mac: "", "x-token": secret }], ips: [], dns: {} },
  args: { cni: { token: secret } },
  dns: { options: [`x-${secret}`] },
  plugins: [{ type: "other", kubeconfig: secret }],
};

/** Configurations that are wrong in a place beside the secret, or that are no JSON because of it. */
const broken: readonly string[] = [
  `{"cniVersion": "1.1.0", "name": "pods", "password": ${secret}}`,
  `{"cniVersion": "1.1.0", "name": "pods", "password": "${secret}`,
  `{"cniVersion": "1.1.0", "name": "pods", ${secret}: 1}`,
  `"${secret}"`,
  `["${secret}"]`,
  `{"cniVersion": "1.1.0", "name": "pods", "type": "pipette", "runtimeConfig": ["${secret}"]}`,
  `{"cniVersion": "1.1.0", "name": "pods", "type": "pipette", "dns": {"options": {"password": "${secret}"}}}`,
];

describeWith("a secret in a plugin's call", ["root", "linux"], () => {
  beforeAll(compileExecutables);

  test("is in no log, error or file, of plugin and agent, at debug level, whatever becomes of the call", async () => {
    using directory = scratch();
    await using home = new AgentHome({ logLevel: "debug" }, executables, ["unshare", "--net"]);
    const agent = await home.start();
    using pod = NetworkNamespace.create();
    const logFile = `${directory.path}/plugin.log`;
    const conf = { cniVersion: "1.1.0", name: "pods", type: "pipette", socket: home.socket, dataDir: home.dataDir };
    const debug = { ...conf, ...withSecrets, logFile, logLevel: "debug" };
    const said: string[] = [];
    const netns = [pod.path, "/dev/null", `${directory.path}/none`];
    for (const verb of ["ADD", "CHECK", "STATUS", "GC", "DEL", "VERSION"])
      for (const CNI_NETNS of netns) {
        const gc = { "cni.dev/valid-attachments": [] };
        const ended = await run({ env: env(verb, { CNI_NETNS }), stdin: { ...debug, ...gc, ipam: {} } });
        said.push(ended.stderr, ended.status === 0 ? "" : ended.stdout);
      }
    for (const stdin of broken)
      for (const executable of ["pipette", "pipette-ipam"] as const) {
        const ended = await run({ executable, env: env("ADD", { CNI_NETNS: pod.path }), stdin });
        said.push(ended.stderr, ended.stdout);
      }
    // Encoded secrets end in "=", which CNI_ARGS takes for a second one.
    for (const CNI_ARGS of [`TOKEN=${secret}==`, secret, `IgnoreUnknown=1;A=b;${secret}`]) {
      const ended = await run({ env: { ...env("ADD"), CNI_ARGS, CNI_NETNS: pod.path }, stdin: conf });
      said.push(ended.stderr, ended.stdout);
    }
    await agent.end();
    said.push(agent.stderr, agent.stdout, readFileSync(logFile, "utf8"));
    for (const directoryOf of [home.dataDir, join(home.directory, "net.d"), join(home.directory, "run")])
      for (const name of existsSync(directoryOf) ? readdirSync(directoryOf) : [])
        said.push(readFileSync(join(directoryOf, name), "latin1"));
    expect(said.length).toBeGreaterThan(40);
    expect(said.filter((text) => text.includes(secret))).toEqual([]);
    // It was looked at: names of keys are there.
    expect(readFileSync(logFile, "utf8")).toContain('"password":"…"');
    expect(agent.stderr).toContain("TOKEN=…");
  });
});

describeWith("a key or token that everybody on the node can read", ["root", "linux"], () => {
  beforeAll(compileExecutables);

  test.each([
    ["etcd", "key", { endpoints: ["https://127.0.0.1:1"], cert: "/none" }],
    ["kubernetes", "token", { server: "https://127.0.0.1:1" }],
  ])("of %s is told by --check, and by doctor; one for root is not", async (type, key, more) => {
    using directory = scratch();
    const file = `${directory.path}/secret`;
    writeFileSync(file, secret);
    const networks = [{ name: "pods", bridge: "ptd0" }];
    await using home = new AgentHome(
      { networks, nodes: { name: "a", registry: { type, ...more, [key]: file } } },
      executables,
    );
    const what = `"${file}" can be read by everybody (mode 644)`;
    const check = (mode: number): readonly [number, string] => {
      chmodSync(file, mode);
      const ended = Bun.spawnSync([...home.command, "agent", "--check", "--config", home.configFile]);
      return [ended.exitCode, String(ended.stderr)];
    };
    expect(check(0o640)).toEqual([0, ""]);
    expect(check(0o644)).toEqual([0, expect.stringContaining(what)]);
    // The other one's registry keeps a doctor waiting for the node's own address.
    if (type !== "etcd") return;
    const doctor = [...home.command, "doctor", "--once", "--json", "--config", home.configFile];
    expect(String(Bun.spawnSync(["unshare", "--net", ...doctor]).stdout)).toContain("secret-readable");
  });
});

describeWith("a name that commands terminals or forges lines", ["root", "linux"], () => {
  beforeAll(compileExecutables);
  const forged = 'web\n{"level":"error"}\u001b[2J\u009b2J\u007f\u202e\u2028';

  test("stands escaped in every log line, error, table and answer", async () => {
    using directory = scratch();
    await using home = new AgentHome({ logLevel: "debug" }, executables, ["unshare", "--net"]);
    const agent = await home.start();
    using pod = NetworkNamespace.create();
    const logFile = `${directory.path}/plugin.log`;
    const stdin = {
      cniVersion: "1.1.0",
      name: "pods",
      type: "pipette",
      socket: home.socket,
      dataDir: home.dataDir,
      logFile,
      logLevel: "debug",
    };
    const CNI_ARGS = `IgnoreUnknown=1;K8S_POD_NAME=${forged};K8S_POD_NAMESPACE=${forged};K8S_POD_UID=${forged}`;
    const said: string[] = [];
    for (const [verb, more] of [
      ["ADD", {}],
      ["CHECK", { CNI_NETNS: `/${forged}` }],
      ["ADD", { CNI_IFNAME: forged }],
      ["ADD", { CNI_NETNS: `/${forged}` }],
      ["ADD", { CNI_CONTAINERID: forged }],
    ] as const) {
      const ended = await run({ env: variables(verb, { CNI_ARGS, CNI_NETNS: pod.path, ...more }), stdin });
      said.push(ended.stdout.trimEnd(), ...ended.stderr.trimEnd().split("\n"));
    }
    const commands = [
      ["ipam", "list"],
      ["ipam", "show", "10.78.0.2"],
      ["ipam", "list", "--json"],
      ["ipam", "stats"],
      ["ipam", "check"],
    ];
    for (const words of commands) {
      const ended = Bun.spawnSync([`${executables}/pipette`, ...words, "--data-dir", home.dataDir]);
      said.push(...`${ended.stdout}${ended.stderr}`.split("\n"));
    }
    const status = Bun.spawnSync([`${executables}/pipette`, "status", "--config", home.configFile]);
    said.push(...`${status.stdout}${status.stderr}`.split("\n"));
    await agent.end();
    const logs = `${agent.stderr}${readFileSync(logFile, "utf8")}`.trimEnd().split("\n");
    for (const line of logs) expect(() => JSON.parse(line), line).not.toThrow();
    const commanding = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
    expect([...said, ...logs].filter((line) => commanding.test(line))).toEqual([]);
    expect(logs.join()).toContain("web\\n");
    expect(said.join()).toContain("web\\u000a");
  });
});
