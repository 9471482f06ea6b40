import { mkdir, open, readFile, rename, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { ServiceDefinition } from "../../platform/agent-service.ts";
import { type Systemd, thisSystemd, unitName, unitText } from "../../platform/systemd.ts";
import { codeOf, failed, isMissing, nameBeside, planSweep, removeFile, syncDirectory } from "./files.ts";
import type { Step } from "./plan.ts";
import type { ServiceInstaller, ServiceWish } from "./service.ts";

/** The agent as a unit of systemd; on a machine without systemd the plan only says so. */
export function openSystemd(systemd: Systemd = thisSystemd): ServiceInstaller {
  const path = join(systemd.unitDir, unitName);
  const call = async (...args: readonly string[]): Promise<undefined> => {
    const { status, stderr } = await systemd.systemctl(args);
    if (status !== 0)
      throw new CniError(CniCode.io, `Cannot ${args[0]} "${unitName}": systemctl ends with ${status}`, {
        details: `${stderr.trim()}\n"journalctl -u ${unitName}" tells what the agent said`.trim(),
      });
  };
  const answer = async (...args: readonly string[]): Promise<string> => (await systemd.systemctl(args)).stdout.trim();
  const step = (action: Step["action"], detail: string, ...args: readonly string[]): Step => ({
    action,
    target: unitName,
    detail: `systemctl ${args.join(" ")}${detail === "" ? "" : `: ${detail}`}`,
    run: () => call(...args),
  });

  return {
    async planInstall(definition, wish) {
      if (!(await systemd.booted())) return [withoutSystemd];
      const unit = await planUnit(path, definition);
      const enabled = (await answer("is-enabled", unitName)) === "enabled";
      const active = (await answer("is-active", unitName)) === "active";
      const changed =
        unit.run !== undefined ||
        wish.executableChanged ||
        // An earlier run that was killed has replaced the file, and not the process.
        (active &&
          !(await runs(definition.executable, await answer("show", "--property=MainPID", "--value", unitName))));
      return [
        ...(await planSweep(path)),
        unit,
        ...(unit.run === undefined ? [] : [step("register", "", "daemon-reload")]),
        ...(enabled ? [] : [step("register", "starts with the system", "enable", unitName)]),
        ...startSteps(active, changed, wish, step),
      ];
    },
    async planRemoval() {
      const present = (await textOf(path)) !== undefined;
      const remove: Step = { action: "remove", target: path, detail: "unit", run: () => takeAway(path) };
      if (!(await systemd.booted()))
        return present ? [remove] : [{ action: "none", target: path, detail: "is not there" }];
      const loaded = (await answer("show", "--property=LoadState", "--value", unitName)) === "loaded";
      return [
        ...(loaded ? [step("stop", "and no longer with the system", "disable", "--now", unitName)] : []),
        ...(present ? [remove, step("register", "", "daemon-reload")] : []),
        ...(loaded || present ? [] : [{ action: "none", target: unitName, detail: "is not there" } as const]),
      ];
    },
  };
}

const withoutSystemd: Step = {
  action: "none",
  target: unitName,
  detail: 'this machine has no systemd: start "pipette agent" by what it has',
};

function startSteps(
  active: boolean,
  changed: boolean,
  { leaveStopped }: ServiceWish,
  step: (action: Step["action"], detail: string, ...args: readonly string[]) => Step,
): Step[] {
  if (leaveStopped) return [{ action: "none", target: unitName, detail: "left as it runs, or does not" }];
  if (active && !changed) return [{ action: "keep", target: unitName, detail: "runs, and is the same" }];
  // `systemctl` returns once the agent serves and has written the runtime's file.
  return [step(active ? "restart" : "start", "until it serves", "restart", unitName)];
}

/** Whether the process runs this very file; also where that cannot be seen. */
async function runs(executable: string, pid: string): Promise<boolean> {
  try {
    const [running, installed] = await Promise.all([`/proc/${pid}/exe`, executable].map((path) => stat(path)));
    return running?.ino === installed?.ino && running?.dev === installed?.dev;
  } catch {
    return true;
  }
}

async function planUnit(path: string, definition: ServiceDefinition): Promise<Step> {
  const text = unitText(definition);
  const present = await textOf(path);
  if (present === text) return { action: "keep", target: path, detail: "unit, the same already" };
  const run = () => writeUnit(path, text);
  return { action: present === undefined ? "create" : "replace", target: path, detail: "unit", run };
}

async function writeUnit(path: string, text: string): Promise<undefined> {
  const temporary = nameBeside(path);
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    {
      await using file = await open(temporary, "wx", 0o644);
      await file.writeFile(text);
      await file.sync();
    }
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (caught) {
    await unlink(temporary).catch(() => undefined);
    throw failed("write", path, caught);
  }
}

async function takeAway(path: string): Promise<undefined> {
  await removeFile(path).catch((caught) => {
    throw failed("remove", path, caught);
  });
}

/** A masked unit is a link to /dev/null, which the administrator made on purpose. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    const { lstat } = await import("node:fs/promises");
    if (!(await lstat(path)).isFile())
      throw new CniError(CniCode.io, `Cannot register "${path}": it is no file, wanted a unit, or nothing`);
    return await readFile(path, "utf8");
  } catch (caught) {
    if (isMissing(caught) || codeOf(caught) === "ENOTDIR") return undefined;
    throw caught instanceof CniError ? caught : failed("read", path, caught);
  }
}
