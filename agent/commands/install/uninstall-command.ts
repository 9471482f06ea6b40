import { existsSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { paths } from "../../../shared/os/paths.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { type CommandLine, defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { conflistPath } from "../../conflist/conflist.ts";
import { planUnlink } from "./command-link.ts";
import { readConfig } from "./config-file.ts";
import { podsWithAddresses, removeConfig, removeData, removeSocket } from "./data-directory.ts";
import { directoriesOf, executablesAt, executablesIn, type Places, planRemoval } from "./executables.ts";
import { planSweep, removeFile } from "./files.ts";
import { planHostCleanUp, planNetworkCleanUp } from "./host-clean-up.ts";
import { leftBehind } from "./left.ts";
import { agentWarning, lockInstallation, lockName, planAgentGone } from "./locks.ts";
import { placesOf } from "./places.ts";
import type { Plan, Step } from "./plan.ts";
import { placeOptions, runPlan } from "./plan.ts";
import { planUnconfigure } from "./runtime-configuration.ts";
import type { ServiceInstaller } from "./service.ts";

const options = {
  ...placeOptions,
  purge: { help: "the agent's configuration, leases and log too" },
  network: {
    help: "Linux: what agents have changed of the node's network too: pods' interfaces, bridges, routes, packet rules",
  },
  stay: { help: "stays when all is done, until SIGTERM: for a DaemonSet" },
  "with-pods": { help: "goes on although pods have addresses; nobody will take their network down" },
  "executables-only": { help: "neither service nor the runtime's configuration" },
  "no-service": { help: "leaves the service alone: something else runs the agent" },
} as const;

/** `pipette uninstall`; tests put another installer of services in its place. */
export const uninstallCommandWith = (openInstaller: () => Promise<ServiceInstaller>) =>
  defineCommand({
    action: "uninstall",
    about: `Takes the runtime's configuration away, then the service, then the executables; agent.yaml and the leases stay,
unless --purge asks for those too. What stays is listed, with the command that takes it away. It wants a drained node: without the executables nobody takes a pod's network down.
What is not there already is passed over, so it can be run again to finish what was interrupted.`,
    options,
    exits: { 1: "failed; what was done is listed, and the next run goes on from there" },
    run: async (line, io) => {
      const { "dry-run": dryRun, json, progress } = line.options;
      const places = placesOf(line.options);
      const directories = directoriesOf(places).filter((directory) => existsSync(directory));
      using locks = dryRun ? undefined : await lockInstallation(directories);
      const plan = await planUninstall(line, places, openInstaller);
      const status = await runPlan(plan, { dryRun, json, progress }, io);
      locks?.[Symbol.dispose]();
      if (!dryRun) for (const directory of directories) await removeFile(join(directory, lockName));
      // Of our making, unlike the other; where it is mounted, or holds what still runs, it stays.
      if (!dryRun && places.libexec !== undefined) await rmdir(places.libexec).catch(() => undefined);
      if (line.options.stay && status === exitStatus.done) await terminated();
      return status;
    },
  });

async function planUninstall(
  { options: given }: CommandLine<typeof options>,
  places: Places,
  openInstaller: () => Promise<ServiceInstaller>,
): Promise<Plan> {
  const swept = await Promise.all(executablesAt(places).map((path) => planSweep(path)));
  const link = await planUnlink(executablesIn(places.bin)[0], given["link-dir"]);
  const executables = [...link, ...(await planRemoval(places)), ...swept.flat()];
  if (given["executables-only"]) return { steps: executables, warnings: [] };
  const configFile = resolve(given.config ?? paths.agentConfig);
  const { config, warnings } = await configOrDefaults(configFile);
  const dataDir = config?.dataDir ?? paths.dataDir;
  const pods = await podsWithAddresses(dataDir);
  if (pods > 0 && !given["with-pods"])
    throw new CniError(
      CniCode.tryAgainLater,
      `Cannot uninstall: ${pods === 1 ? "1 pod of this node has an address" : `${pods} pods of this node have addresses`}, wanted it drained; "pipette ipam list" shows them, --with-pods goes on all the same`,
    );
  const conflist = config === undefined ? join(paths.cniConfDir, "10-pipette.conflist") : conflistPath(config);
  const unconfigured = conflist === undefined ? { steps: [], warnings: [] } : await planUnconfigure(conflist);
  const service = given["no-service"] ? [] : await (await openInstaller()).planRemoval();
  const gone = given["no-service"] ? [] : await planAgentGone(dataDir, service);
  // Before its data is removed, an agent that was not started by our service has to have ended too.
  if (given["no-service"] && given.network) await planAgentGone(dataDir, []);
  const isSocketFree = config !== undefined && !isWindows && (given.network || !given["no-service"]);
  const running = given["no-service"] ? await agentWarning(dataDir) : [];
  // The configuration is removed after what it describes, so that a failed run can be repeated.
  const data: readonly Step[] = given.purge
    ? [
        ...(isSocketFree ? [removeSocket(config.socket)] : []),
        removeData(dataDir),
        ...(await planSweep(configFile)),
        removeConfig(configFile),
      ]
    : [];
  // The host's network is cleaned up after the agent has stopped, with the executable that is still installed.
  const network = given.network ? planNetworkCleanUp(config, configFile) : [];
  const host = isWindows ? await planHostCleanUp(dataDir, configFile) : network;
  return {
    // The executables last, because this command may be one of them.
    steps: [...unconfigured.steps, ...service, ...gone, ...host, ...data, ...executables],
    warnings: [...warnings, ...unconfigured.warnings, ...running],
    left: await leftBehind(config, { configFile, dataDir, purge: given.purge, network: given.network }),
  };
}

/** Resolves with SIGTERM, which has no default action for the first process of a container. */
async function terminated(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
  // A signal handler alone does not keep the process alive.
  const timer = setInterval(() => undefined, 60_000);
  await promise;
  clearInterval(timer);
}

/** An unreadable configuration must not prevent the removal of the rest. */
async function configOrDefaults(
  path: string,
): Promise<{ readonly config: AgentConfig | undefined; readonly warnings: readonly string[] }> {
  try {
    return { config: await readConfig(path), warnings: [] };
  } catch (caught) {
    const { message } = CniError.from(caught);
    return { config: undefined, warnings: [`${message}: the defaults are taken for where things lie`] };
  }
}
