import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { Allocator, parseIpamConfig } from "../../ipam/mod.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ipamCall, mustSucceed } from "./ipam-call.ts";

const pipette = `${executables}/pipette`;

beforeAll(compileExecutables);

function run(args: readonly string[], more: { readonly input?: string; readonly cwd?: string } = {}) {
  const env = { PATH: "/usr/bin:/bin" };
  const { status, stdout, stderr } = spawnSync(pipette, args, { encoding: "utf8", env, timeout: 30_000, ...more });
  return { status, stdout, stderr };
}

const shell = (text: string, env: Readonly<Record<string, string>> = {}) =>
  spawnSync("bash", ["-c", text, pipette], {
    encoding: "utf8",
    timeout: 30_000,
    env: { PATH: "/usr/bin:/bin", ...env },
  });

const confIn = (dataDir: string) => ({
  cniVersion: "1.1.0",
  name: "pt-people",
  ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.77.0.0/24" }]] },
});

test("what a runtime's ADD has done can be looked at, drawn, checked and undone", async () => {
  using scratch = scratchDir();
  const conf = confIn(scratch.path);
  await mustSucceed(ipamCall("ADD", "c1", conf));
  await mustSucceed(ipamCall("ADD", "c2", conf));
  const dir = ["--data-dir", scratch.path];
  const listed = run(["ipam", "list", "--json", ...dir]);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ address: "10.77.0.2/24" }, { address: "10.77.0.3/24" }]);
  expect(run(["ipam", "show", "10.77.0.2", ...dir]).status).toBe(0);
  expect(run(["ipam", "show", "10.77.0.9", ...dir]).status).toBe(3);
  expect(run(["ipam", "show", "c", ...dir]).status).toBe(4);
  expect(run(["ipam", "show", ...dir]).status).toBe(2);
  // The configuration from standard input, and a data directory as one types it.
  const map = run(["ipam", "map", "--conf", "-"], { input: JSON.stringify(conf) });
  expect(map.stdout).toContain("10.77.0.1     G##.");
  expect(run(["ipam", "stats", "--data-dir", "."], { cwd: scratch.path }).stdout).toContain("pt-people");
  expect(run(["ipam", "check", ...dir])).toMatchObject({ status: 0, stderr: "" });
  expect(run(["ipam", "release", "10.77.0.2", ...dir])).toMatchObject({ status: 1, stdout: "" });
  expect(run(["ipam", "release", "10.77.0.2", "--force", ...dir]).status).toBe(0);
  const { ips } = await mustSucceed(ipamCall("ADD", "c1", conf));
  expect(ips).toEqual([{ address: "10.77.0.2/24", gateway: "10.77.0.1" }]);
});

test("a look leaves nothing behind where nothing was", () => {
  using scratch = scratchDir();
  for (const command of ["list", "map", "stats", "check"])
    expect(run(["ipam", command, "--data-dir", `${scratch.path}/none`])).toMatchObject({ status: 3, stdout: "" });
  expect(shell(`ls -A ${scratch.path}`).stdout).toBe("");
});

test("whoever reads only the beginning ends it in peace", async () => {
  using scratch = scratchDir();
  {
    using allocator = await Allocator.open(scratch.path);
    const conf = new Fields({ ipam: { ranges: [[{ subnet: "10.77.0.0/20" }]] } });
    const config = parseIpamConfig({ conf, network: "pt-people", version: "1.0.0", args: "" });
    for (let i = 0; i < 3000; i++)
      allocator.allocate({ network: "pt-people", sandboxId: `s${i}`, ifname: "eth0" }, config);
  }
  const { status, stdout, stderr } = shell(
    `set -o pipefail; "$0" ipam list --json --data-dir ${scratch.path} | head -n 2`,
  );
  expect([status, stdout, stderr]).toEqual([0, "[\n  {\n", ""]);
});

test("colours on a terminal only, and not against the person's wish", async () => {
  using scratch = scratchDir();
  writeFileSync(`${scratch.path}/conf`, JSON.stringify(confIn(scratch.path)));
  await mustSucceed(ipamCall("ADD", "c1", confIn(scratch.path)));
  const command = `${pipette} ipam map --conf ${scratch.path}/conf`;
  const onTerminal = (env: Readonly<Record<string, string>>): string =>
    shell(`script -qec '${command}' /dev/null < /dev/null`, { LANG: "C.UTF-8", TERM: "xterm", ...env }).stdout;
  expect(onTerminal({})).toContain("\u001b[34m█\u001b[0m");
  expect(onTerminal({ NO_COLOR: "1" })).not.toContain("\u001b[34m");
  expect(shell(command, { LANG: "C.UTF-8" }).stdout).toContain("◆█·");
});

test("help of every command, and of a slip", () => {
  const commands =
    run(["ipam", "--help"])
      .stdout.match(/^ {2}(\w+) {2}/gm)
      ?.map((line) => line.trim()) ?? [];
  expect(commands).toEqual("list show history map stats allocate release check gc import export serve".split(" "));
  for (const command of commands) {
    const { status, stdout, stderr } = run(["ipam", command, "--help"]);
    expect([status, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(new RegExp(`^Usage: pipette ipam ${command} `));
    expect(stdout).toMatch(/Exit status:\n {2}0 {2}\w/);
  }
  expect(run(["ipm"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('Cannot run "pipette": the command is "ipm" (did you mean "ipam"?), wanted'),
  });
  expect(run(["--version"]).stdout).toMatch(/^pipette \d/);
  expect(run([])).toMatchObject({ status: 0, stdout: "", stderr: expect.stringContaining("Usage: pipette COMMAND") });
});
