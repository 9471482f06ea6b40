import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleCommand } from "../../agent/commands/bundle/bundle-command.ts";
import { doctorCommand } from "../../agent/commands/doctor/doctor-command.ts";
import { statusCommand } from "../../agent/commands/status/status-command.ts";
import { getCommand } from "../../operator/mod.ts";
import type { Command } from "../../shared/terminal/command.ts";
import { runAt, type TerminalRun } from "../fakes/terminal-run.ts";
import { AgentHome, AgentProcess, eventually, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

const ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true });
const schema = (name: string) =>
  ajv.compile(JSON.parse(readFileSync(new URL(`../../conf/documents/${name}.schema.json`, import.meta.url), "utf8")));
const commands: Readonly<Record<string, Command>> = { status: statusCommand, doctor: doctorCommand, get: getCommand };

describeWith("forms of status and doctor, by the socket and from a bundle", ["linux", "root", "nft"], () => {
  const stack = new AsyncDisposableStack();
  let home: AgentHome;
  let agent: AgentProcess;
  let sandbox: NetworkSandbox;
  let file: string;

  beforeAll(async () => {
    sandbox = stack.use(await NetworkSandbox.enter("pt-fo-"));
    home = stack.use(new AgentHome());
    agent = await home.start({ PIPETTE_NODE_NAME: "here" });
    await add("s1", "web");
    file = join(home.directory, "b.tar.gz");
    const words = ["--socket", home.socket, "--node", "here", "-o", file];
    // A kernel bridge has no flows, which the bundle says.
    expect((await runAt("pipette bundle", bundleCommand, words)).stderr).toMatch(
      /^without nodes\/here\/flows\.json: .*\n$/,
    );
  });
  afterAll(() => stack.disposeAsync());

  async function add(id: string, name: string): Promise<void> {
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=u-${name}`;
    resultOf(await home.cmd("cmdAdd", id, { netns: await sandbox.addPod(id), args }));
  }
  const run = (name: string, ...args: string[]): Promise<TerminalRun> =>
    runAt(`pipette ${name}`, commands[name] ?? getCommand, args);
  const ways = (): readonly (readonly string[])[] => [
    ["--socket", home.socket],
    ["--socket", home.socket, "--node", "here"],
    ["--bundle", file],
    ["--bundle", file, "--node", "here"],
  ];

  test.each(["status", "doctor"])(
    "%s as JSON and YAML says the same by every way, as its schema has it",
    async (name) => {
      const validate = schema(name);
      for (const way of ways()) {
        const json = await run(name, ...way, "-o", "json");
        expect([way, json.status, json.stderr]).toEqual([way, 0, ""]);
        const document = JSON.parse(json.stdout);
        expect(validate(document) || validate.errors).toBe(true);
        expect(document).toMatchObject({ kind: name, version: 1 });
        const [leases, interfaces] =
          name === "status"
            ? [document.leases.length, document.interfaces.length]
            : [document.leases, document.interfaces];
        expect([leases, interfaces]).toEqual([2, 1]);
        // Whoever takes "--json" goes on doing so.
        expect(JSON.parse((await run(name, ...way, "--json")).stdout)).toEqual(document);
        expect(Bun.YAML.parse((await run(name, ...way, "-o", "yaml")).stdout)).toEqual(document);
      }
    },
  );

  test("status of one node as text, and wide; of all a line each", async () => {
    for (const way of ways()) {
      const { status, stdout } = await run("status", ...way);
      expect([status, stdout]).toEqual([
        0,
        expect.stringMatching(/^pipette agent .*\nINTERFACE +NETWORK .*POD\n.*shop\/web\n/s),
      ]);
      expect((await run("status", ...way, "-o", "wide")).stdout).toMatch(
        /POD +AGE +GENERATION\n.* shop\/web +\d+s +\d+\n/,
      );
    }
    const all = await run("status", "--bundle", file, "-A");
    expect(all).toMatchObject({ status: 0, stderr: "" });
    expect(all.stdout).toMatch(/^NODE +STATE +VERSION .*\nhere +ready .* 1 +2 +0\n$/);
    expect(JSON.parse((await run("status", "--bundle", file, "-A", "-o", "json")).stdout)).toMatchObject({
      ...{ kind: "list", failures: [] },
      items: [{ kind: "status", node: "here" }],
    });
  });

  test("doctor of all nodes is a table with the node, and wide of one has the codes", async () => {
    expect(await run("doctor", "--bundle", file, "-A")).toMatchObject({ status: 0, stderr: "" });
    const { stdout } = await run("doctor", "--config", home.configFile, "-o", "json");
    expect(JSON.parse(stdout)).toMatchObject({ kind: "doctor", node: expect.any(String), repaired: [] });
    const findings = JSON.parse(stdout).findings as { code: string }[];
    const wide = await run("doctor", "--config", home.configFile, "-o", "wide");
    for (const { code } of findings) expect(wide.stdout).toContain(`  code: ${code}\n`);
  });

  test.each<[string, string[], RegExp]>([
    ["status", ["--json", "-o", "yaml"], /^Cannot choose a form: "--json" and "--output yaml" are both there/],
    ["status", ["-o", "xml"], /"xml"/],
    ["status", ["--node", "Über"], /^Cannot choose nodes: "--node" is "Über", wanted the name of a node/],
    ["status", ["--node", "a", "-A"], /"--node" and "--all-nodes" are both there/],
    ["doctor", ["--watch", "--repair"], /"--watch" looks again and again, wanted it without "--repair" or "-"/],
    ["doctor", ["--json", "-o", "table"], /wanted one of them/],
  ])("%s %j is refused in a sentence", async (name, args, sentence) => {
    const way = args.includes("--repair") ? ["--config", home.configFile] : ["--socket", home.socket];
    const { status, stdout, stderr } = await run(name, ...way, ...args);
    expect([status, stdout, stderr]).toEqual([2, "", expect.stringMatching(sentence)]);
  });

  test("a bundle's watch ends, since nothing in it changes", async () => {
    for (const name of ["status", "doctor"]) {
      const once = await run(name, "--bundle", file);
      const watched = await run(name, "--bundle", file, "--watch");
      expect([watched.status, watched.stderr]).toEqual([once.status, ""]);
      expect(watched.stdout.split("\n").length).toBe(once.stdout.split("\n").length);
    }
  });

  const started = (...args: string[]): AgentProcess =>
    stack.adopt(new AgentProcess([...home.command, ...args]), (one) => one.end("SIGKILL").then(() => undefined));

  test("a watch shows what comes, names the agent that goes once, and goes on with the next", async () => {
    const watching = started("status", "--socket", home.socket, "--watch", "-o", "yaml");
    const documents = () =>
      watching.stdout.split("---\n").map((text) => Bun.YAML.parse(text) as { interfaces?: unknown[] });
    const has = (interfaces: number) => () => documents().at(-1)?.interfaces?.length === interfaces;
    await eventually(has(1), "the first look");
    await add("s2", "db");
    await eventually(has(2), "the pod that came");
    await agent.end();
    await eventually(() => watching.stderr.includes("nobody serves"), "the agent that went");
    agent = await home.start({ PIPETTE_NODE_NAME: "here" });
    await add("s3", "late");
    await eventually(has(3), "a pod of the next agent");
    expect(watching.stderr.trimEnd().split("\n")).toHaveLength(1);
    await watching.end();
  });

  test("a doctor watches its node also without an agent", async () => {
    const watching = started("doctor", "--config", home.configFile, "--watch", "-o", "json");
    const looks = () => watching.stdout.split("\n{\n").length;
    await eventually(() => watching.stdout.includes('"kind": "doctor"'), "the first look");
    await agent.end();
    await eventually(() => looks() > 1 && watching.stdout.includes('"agent-away"'), "the agent that went");
    await watching.end();
  });
});
