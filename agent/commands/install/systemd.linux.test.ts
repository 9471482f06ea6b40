import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { type SystemctlEnded, type Systemd, unitName, unitText } from "../../platform/systemd.ts";
import { carryOut } from "./plan.ts";
import { openSystemd } from "./systemd.linux.ts";

const definition = {
  executable: "/usr/libexec/pipette/pipette",
  configFile: "/etc/pipette/agent.yaml",
  dataDir: "/var/lib/pipette",
  confDir: "/etc/cni/net.d",
  socket: "/var/run/pipette/cni.sock",
};
const fresh = { executableChanged: true, leaveStopped: false };

/** A systemd that keeps what it is told; `fails` names the verb that does. */
class ScriptedSystemd implements Systemd {
  readonly unitDir: string;
  readonly calls: string[] = [];
  enabled = false;
  active = false;
  fails = "";
  boots = true;

  constructor(unitDir: string) {
    this.unitDir = unitDir;
  }

  booted = async (): Promise<boolean> => this.boots;

  systemctl = async (args: readonly string[]): Promise<SystemctlEnded> => {
    this.calls.push(args.join(" "));
    const [verb = ""] = args;
    if (verb === this.fails) return { status: 1, stdout: "", stderr: "Job failed." };
    if (verb === "enable") this.enabled = true;
    if (verb === "restart") this.active = true;
    if (verb === "disable") this.enabled = this.active = false;
    const loaded = existsSync(join(this.unitDir, unitName)) ? "loaded" : "not-found";
    const state = {
      "is-enabled": this.enabled ? "enabled" : "disabled",
      "is-active": this.active ? "active" : "inactive",
    };
    return { status: 0, stdout: `${{ ...state, show: loaded }[verb] ?? ""}\n`, stderr: "" };
  };

  /** Calls that change something. */
  get orders(): string[] {
    return this.calls.filter((call) => !/^(is-|show)/.test(call));
  }

  async install(wish = fresh) {
    return carryOut({ steps: await openSystemd(this).planInstall(definition, wish), warnings: [] }, () => undefined);
  }
}

test("the unit is conf/pipette-agent.service", () => {
  const sample = readFileSync(new URL("../../../conf/pipette-agent.service", import.meta.url), "utf8");
  expect(unitText(definition)).toBe(sample);
});

test("paths in the unit are quoted where systemd would read them otherwise", () => {
  const text = unitText({ ...definition, executable: "/opt/100%/pipette", configFile: "/etc/my pods/$x.yaml" });
  expect(text).toContain('\nExecStart=/opt/100%%/pipette agent --config "/etc/my pods/$$x.yaml"\n');
  expect(text).toContain(" if=/opt/100%%/pipette of=/dev/null ");
});

test("what the agent writes to stays writable, wherever its configuration has it", () => {
  expect(unitText(definition)).toContain("\nReadWritePaths=/etc/cni/net.d\n");
  const elsewhere = { ...definition, dataDir: "/srv/my pods", socket: "/srv/run/cni.sock" };
  const text = unitText(elsewhere);
  const all = '/etc/cni/net.d "/srv/my pods" /srv/run\n';
  expect([text.includes(`\nReadWritePaths=${all}`), text.includes(` -m 0755 ${all}`)]).toEqual([true, true]);
});

test("registers, enables and starts; a second time there is nothing to do", async () => {
  using scratch = scratchDir();
  const systemd = new ScriptedSystemd(join(scratch.path, "system"));
  await systemd.install();
  expect(systemd.orders).toEqual(["daemon-reload", `enable ${unitName}`, `restart ${unitName}`]);
  const unit = join(systemd.unitDir, unitName);
  expect(readFileSync(unit, "utf8")).toBe(unitText(definition));
  expect(statSync(unit).mode & 0o777).toBe(0o644);
  expect(readdirSync(systemd.unitDir)).toEqual([unitName]);

  systemd.calls.length = 0;
  const again = await systemd.install({ ...fresh, executableChanged: false });
  expect([systemd.orders, again.steps.map(({ action }) => action)]).toEqual([[], ["keep", "keep"]]);
});

test("another executable restarts the agent, another unit is loaded again first", async () => {
  using scratch = scratchDir();
  const systemd = new ScriptedSystemd(scratch.path);
  await systemd.install();
  systemd.calls.length = 0;
  await systemd.install();
  expect(systemd.orders).toEqual([`restart ${unitName}`]);
  writeFileSync(join(scratch.path, unitName), "[Service]\n");
  systemd.calls.length = 0;
  await systemd.install({ ...fresh, executableChanged: false });
  expect(systemd.orders).toEqual(["daemon-reload", `restart ${unitName}`]);
});

test("--no-start registers and lets it run as it does", async () => {
  using scratch = scratchDir();
  const systemd = new ScriptedSystemd(scratch.path);
  await systemd.install({ ...fresh, leaveStopped: true });
  expect(systemd.orders).toEqual(["daemon-reload", `enable ${unitName}`]);
});

test("a start that fails ends the run with systemd's words and where to look", async () => {
  using scratch = scratchDir();
  const systemd = new ScriptedSystemd(scratch.path);
  systemd.fails = "restart";
  const { failure, steps } = await systemd.install();
  expect(failure?.message).toBe(`Cannot restart "${unitName}": systemctl ends with 1`);
  expect(failure?.details).toContain("Job failed.");
  expect(steps.at(-1)).toMatchObject({ done: false });
});

test("a masked unit stays masked", async () => {
  using scratch = scratchDir();
  symlinkSync("/dev/null", join(scratch.path, unitName));
  await expect(new ScriptedSystemd(scratch.path).install()).rejects.toThrow("it is no file, wanted a unit");
});

test("removal stops, then removes, then has it forgotten; what is not there is passed over", async () => {
  using scratch = scratchDir();
  const systemd = new ScriptedSystemd(scratch.path);
  await systemd.install();
  systemd.calls.length = 0;
  const remove = async () =>
    carryOut({ steps: await openSystemd(systemd).planRemoval(), warnings: [] }, () => undefined);
  await remove();
  expect(systemd.orders).toEqual([`disable --now ${unitName}`, "daemon-reload"]);
  expect([existsSync(join(scratch.path, unitName)), systemd.active]).toEqual([false, false]);
  expect((await remove()).steps.map(({ action }) => action)).toEqual(["none"]);
});

test("without systemd nothing is written, and that is said", async () => {
  using scratch = scratchDir();
  const systemd = new ScriptedSystemd(join(scratch.path, "system"));
  systemd.boots = false;
  const { steps } = await systemd.install();
  expect(steps).toEqual([expect.objectContaining({ action: "none", detail: expect.stringContaining("no systemd") })]);
  expect([systemd.calls, existsSync(systemd.unitDir)]).toEqual([[], false]);
  mkdirSync(systemd.unitDir);
  writeFileSync(join(systemd.unitDir, unitName), "");
  expect(await openSystemd(systemd).planRemoval()).toHaveLength(1);
});
