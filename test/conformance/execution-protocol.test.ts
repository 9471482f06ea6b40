import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { compileExecutables, errorOf, executables, resultOf, run, scratch, variables } from "./plugin.ts";
import { startScriptedAgent } from "./scripted-agent.ts";

const supported = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];
const faces = ["pipette", "pipette-ipam"] as const;

beforeAll(compileExecutables);

test.each(faces)(
  "section 2 VERSION: %s answers every version that it speaks and echoes the one asked in",
  async (executable) => {
    const ended = await run({ executable, env: { CNI_COMMAND: "VERSION" }, stdin: { cniVersion: "0.3.1" } });
    expect(resultOf(ended)).toEqual({ cniVersion: "0.3.1", supportedVersions: supported });
    expect(ended.stderr).toBe("");
  },
);

test.each(faces)(
  "section 2 VERSION: %s needs no variable but CNI_COMMAND and takes podman's placeholders",
  async (executable) => {
    const env = {
      CNI_COMMAND: "VERSION",
      CNI_NETNS: "dummy",
      CNI_IFNAME: "dummy",
      CNI_PATH: "dummy",
      CNI_CONTAINERID: "",
    };
    const ended = await run({ executable, env: { ...env, CNI_ARGS: "" }, stdin: { cniVersion: "1.0.0" } });
    expect(resultOf(ended)).toMatchObject({ cniVersion: "1.0.0" });
  },
);

test.each(faces)("section 2 VERSION: %s answers also without a configuration", async (executable) => {
  expect(resultOf(await run({ executable, env: { CNI_COMMAND: "VERSION" } }))).toMatchObject({ cniVersion: "1.1.0" });
});

test.each(faces)(
  "section 2 VERSION: %s answers one who asks in a version that it does not speak",
  async (executable) => {
    const ended = await run({ executable, env: { CNI_COMMAND: "VERSION" }, stdin: { cniVersion: "9.9.9" } });
    expect(resultOf(ended)).toEqual({ cniVersion: "9.9.9", supportedVersions: supported });
  },
);

test.each(faces)(
  "section 5 Error: %s says a failure in one object on stdout with cniVersion, code, msg, details",
  async (executable) => {
    const stdin = { cniVersion: "0.4.0", name: "n", type: "pipette", ipam: { type: "pipette-ipam" }, mtu: "big" };
    const ended = await run({ executable, env: variables("ADD"), stdin });
    expect(errorOf(ended)).toMatchObject({ cniVersion: "0.4.0", code: 7, details: expect.any(String) });
    expect(ended.status).not.toBe(0);
  },
);

test("section 5 Error: the version of a refused one is answered in the latest", async () => {
  const stdin = { cniVersion: "2.0.0", name: "n", type: "pipette" };
  const error = errorOf(await run({ env: variables("ADD"), stdin }));
  expect(error).toMatchObject({ cniVersion: "1.1.0", code: 1 });
  expect(error.msg).toContain('"2.0.0"');
  expect(error.msg).toContain(supported.join(", "));
});

test("section 2 Execution protocol: DEL, CHECK, GC and STATUS write nothing to stdout when they succeed", async () => {
  await using agent = await startScriptedAgent();
  const conf = { cniVersion: "1.1.0", name: "n", type: "pipette", socket: agent.socket };
  const prevResult = { cniVersion: "1.1.0", ips: [] };
  for (const [verb, more] of [
    ["DEL", {}],
    ["CHECK", { prevResult }],
    ["GC", { "cni.dev/valid-attachments": [] }],
    ["STATUS", {}],
  ] as const) {
    const ended = await run({ env: variables(verb), stdin: { ...conf, ...more } });
    expect([verb, ended.status, ended.stdout]).toEqual([verb, 0, ""]);
  }
});

test("section 2 Execution protocol: ADD ends its one object with a line end and writes nothing to stderr", async () => {
  await using agent = await startScriptedAgent();
  const ended = await run({ env: variables("ADD"), stdin: { cniVersion: "1.0.0", name: "n", socket: agent.socket } });
  expect(ended.stdout).toMatch(/^\{[^\n]*\}\n$/);
  expect(ended.stderr).toBe("");
});

test("section 2 Execution protocol: the agent's result is printed byte for byte", async () => {
  const text = '{ "cniVersion" : "1.0.0",\n "ips":[{"address":"10.1.0.2/16"}], "unknown":1.50 }';
  await using agent = await startScriptedAgent(() => ({ cni_result: text }));
  const ended = await run({ env: variables("ADD"), stdin: { cniVersion: "1.0.0", name: "n", socket: agent.socket } });
  expect(ended.stdout).toBe(`${text}\n`);
});

test("section 2 Execution protocol: a stdout that is full is a failure, told by the status and on stderr", async () => {
  const ended = await run({ env: { CNI_COMMAND: "VERSION" }, redirect: ">/dev/full" });
  expect(ended.status).toBe(1);
  expect(ended.stderr).toContain("Cannot write the result to standard output: ");
});

test("section 2 Execution protocol: a stdout whose reader has gone is a failure, told by the status and on stderr", () => {
  // The reader ends at once, the plugin starts later and tells why by the one stream left.
  const script = `(sleep 0.2; "$0" </dev/null; echo $? >&2) | true`;
  const env = { CNI_COMMAND: "VERSION", PATH: "/usr/bin:/bin" };
  const shell = spawnSync("/bin/sh", ["-c", script, `${executables}/pipette`], { env, encoding: "utf8" });
  expect(shell.stderr).toMatch(/^Cannot write the result to standard output: .*\n1\n$/);
});

test("section 2 Execution protocol: a stdout that was closed before the start is like /dev/null", async () => {
  const ended = await run({ env: { CNI_COMMAND: "VERSION" }, redirect: ">&-" });
  expect([ended.status, ended.stdout, ended.stderr]).toEqual([0, "", ""]);
});

test("section 2 Execution protocol: neither .env nor bunfig.toml of the working directory changes what it does", async () => {
  using directory = scratch();
  writeFileSync(`${directory.path}/.env`, "CNI_COMMAND=VERSION\nTRACEPARENT=from-dotenv\n");
  writeFileSync(`${directory.path}/bunfig.toml`, 'preload = ["./evil.ts"]\n');
  writeFileSync(`${directory.path}/evil.ts`, 'console.log("evil")');
  const ended = await run({ cwd: directory.path });
  expect(ended.stdout).not.toContain("supportedVersions");
  expect(ended.stdout).not.toContain("evil");
  const version = await run({ cwd: directory.path, env: { CNI_COMMAND: "VERSION" } });
  expect(version.stdout).toMatch(/^\{"cniVersion"/);
});
