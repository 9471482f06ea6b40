import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { InstanceLock } from "../../../shared/server/instance-lock.ts";
import { openSystem } from "../../../shared/server/open-system.ts";
import { failed } from "./files.ts";
import type { Step } from "./plan.ts";

/** Its name in the directory of the executables; no runtime takes it for a plugin. */
export const lockName = ".pipette.lock";

/**
 * Keeps a second installation away from these directories, which are made where they are missing. The locks end with the
 * process, however that ends.
 * @throws {CniError} code 5 naming the process that holds one
 */
export async function lockInstallation(directories: readonly string[]): Promise<Disposable> {
  using locks = new DisposableStack();
  for (const directory of directories) {
    await mkdir(directory, { recursive: true, mode: 0o755 }).catch((caught) => {
      throw failed("make", directory, caught);
    });
    const path = join(directory, lockName);
    const system = await openSystem();
    locks.use(await InstanceLock.take(path, "a change of the installation", `"${directory}"`, system));
  }
  return locks.move();
}

/** `process 123`, where an agent holds the data directory, whether it answers or not. */
async function runningAgent(dataDir: string): Promise<string | undefined> {
  const path = join(dataDir, "agent.lock");
  if (!existsSync(path)) return undefined;
  const attempt = (await openSystem()).tryLock(path);
  if (attempt.t !== "ours") return `process ${attempt.holder ?? "unknown"}`;
  attempt.release();
  return undefined;
}

/**
 * An agent that no service has started does not end with the service: it is refused before anything is changed, or, if
 * a service has to be stopped first, once that has ended and an agent still runs.
 * @param service the steps that stop it
 * @throws {CniError} code 11 naming the agent's process
 */
export async function planAgentGone(dataDir: string, service: readonly Step[]): Promise<readonly Step[]> {
  const running = await runningAgent(dataDir);
  if (running === undefined) return [];
  if (!service.some(({ action }) => action === "stop")) throw stillRuns(running);
  const run = async (): Promise<undefined> => {
    const other = await runningAgent(dataDir);
    if (other !== undefined) throw stillRuns(other);
  };
  return [{ action: "none", target: join(dataDir, "agent.lock"), detail: "no agent runs any more", run }];
}

/** A warning if an agent runs, for the option that leaves services alone. */
export async function agentWarning(dataDir: string): Promise<readonly string[]> {
  const running = await runningAgent(dataDir);
  return running === undefined ? [] : [`an agent still runs as ${running}: stop it by what has started it`];
}

const stillRuns = (running: string): CniError =>
  new CniError(
    CniCode.tryAgainLater,
    `Cannot uninstall: an agent that no service of ours has started runs as ${running}, wanted it stopped; with --no-service it is left to what has started it`,
  );
