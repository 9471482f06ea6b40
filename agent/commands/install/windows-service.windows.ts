import { CniCode, CniError } from "../../../shared/errors.ts";
import { type ServiceDefinition, serviceName } from "../../platform/agent-service.ts";
import {
  commandLine,
  openServiceManager,
  type ServiceManager,
  serviceState,
} from "../../platform/windows-service/mod.ts";
import type { Step } from "./plan.ts";
import type { ServiceInstaller } from "./service.ts";

/** A start waits for the data path, which waits for HNS; a stop for the calls in flight (`drainTimeoutMs`). */
const startMs = 120_000;
const stopMs = 40_000;
const pollMs = 200;

/** The agent as a service of Windows, run as LocalSystem. */
export function openWindowsService(): ServiceInstaller {
  return {
    async planInstall(definition, wish) {
      using manager = openServiceManager();
      const present = manager.query(serviceName);
      const command = commandLineOf(definition);
      const same = present?.commandLine === command && present.startType === 2;
      const runs = present?.state === serviceState.running && present.pid !== 0;
      const steps: Step[] = [
        same
          ? { action: "keep", target: serviceName, detail: "service, the same already" }
          : {
              action: present === undefined ? "create" : "replace",
              target: serviceName,
              detail: `service: ${command}`,
              run: async () => registerService(command),
            },
      ];
      if (wish.leaveStopped)
        return [...steps, { action: "none", target: serviceName, detail: "left as it runs, or does not" }];
      if (runs && same && !wish.executableChanged)
        return [...steps, { action: "keep", target: serviceName, detail: "runs, and is the same" }];
      const start: Step = {
        action: present === undefined || present.state === serviceState.stopped ? "start" : "restart",
        target: serviceName,
        detail: "until it serves",
        run: () => restart(logOf(definition)),
      };
      return [...steps, start];
    },
    async planRemoval() {
      using manager = openServiceManager();
      const present = manager.query(serviceName);
      if (present === undefined) return [{ action: "none", target: serviceName, detail: "service, is not there" }];
      const remove = async (): Promise<undefined> => {
        using writing = openServiceManager();
        writing.remove(serviceName);
      };
      return [
        ...(present.state === serviceState.stopped
          ? []
          : [{ action: "stop", target: serviceName, detail: "service", run: stop } as const]),
        { action: "remove", target: serviceName, detail: "service", run: remove },
      ];
    },
  };
}

/** A service has no console. */
const logOf = ({ dataDir }: ServiceDefinition): string => `${dataDir}\\agent.log`;

const commandLineOf = (definition: ServiceDefinition): string =>
  commandLine(definition.executable, [
    "agent",
    "--service",
    "--config",
    definition.configFile,
    "--log-file",
    logOf(definition),
  ]);

function registerService(command: string): string | undefined {
  using manager = openServiceManager();
  const missing = manager.register({
    name: serviceName,
    displayName: "Pipette node agent",
    description: "Gives the pods of this node their network. Stopped, it leaves their network as it is.",
    commandLine: command,
    restart: { delaysMs: [1_000, 5_000, 10_000], forgetAfterS: 3_600 },
  });
  return missing.length === 0 ? undefined : `service; this system has no ${missing.join(", no ")}`;
}

async function restart(log: string): Promise<undefined> {
  await stop();
  using manager = openServiceManager();
  manager.start(serviceName);
  await until(manager, "start", startMs, (state) => {
    if (state === serviceState.running) return true;
    if (state !== serviceState.stopped) return false;
    const { win32ExitCode, ownExitCode } = manager.query(serviceName) ?? { win32ExitCode: 0, ownExitCode: 0 };
    const status = win32ExitCode === 1066 ? `status ${ownExitCode}` : `error ${win32ExitCode}`;
    throw new CniError(CniCode.io, `Cannot start service "${serviceName}": it ended with ${status}`, {
      details: `its log "${log}" tells why`,
    });
  });
}

/** Waits for an orderly end, and kills the process if it does not come. */
async function stop(): Promise<undefined> {
  using manager = openServiceManager();
  const endMs = performance.now() + stopMs;
  // A starting service accepts no control request until it has started.
  while (!manager.stop(serviceName) && performance.now() < endMs) await Bun.sleep(pollMs);
  try {
    await until(manager, "stop", Math.max(1_000, endMs - performance.now()), (state) => state === serviceState.stopped);
  } catch {
    const { pid = 0 } = manager.query(serviceName) ?? {};
    // A service whose process has ended already counts as stopped.
    if (pid === 0) return;
    process.kill(pid, "SIGKILL");
    await until(manager, "stop", stopMs, (state) => state === serviceState.stopped);
  }
}

async function until(
  manager: ServiceManager,
  action: string,
  withinMs: number,
  reached: (state: number) => boolean,
): Promise<void> {
  const end = performance.now() + withinMs;
  for (;;) {
    const state = manager.query(serviceName)?.state ?? serviceState.stopped;
    if (reached(state)) return;
    if (performance.now() > end)
      throw new CniError(
        CniCode.io,
        `Cannot ${action} service "${serviceName}": after ${withinMs} ms it is in state ${state}`,
      );
    await Bun.sleep(pollMs);
  }
}
