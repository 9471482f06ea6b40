import { dirname, join, resolve } from "node:path";
import { networkNameRule, wrongNetworkName } from "../../../shared/cni/names.ts";
import { paths } from "../../../shared/os/paths.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { type CommandLine, defineCommand } from "../../../shared/terminal/command.ts";
import { foreignBefore } from "../../conflist/conflist.ts";
import { planLink } from "./command-link.ts";
import { addressWarnings, type ConfigValues, planConfig } from "./config-file.ts";
import { directoriesOf, executablesAt, executablesIn, type Places, planExecutables } from "./executables.ts";
import { planSweep } from "./files.ts";
import { lockInstallation, lockName } from "./locks.ts";
import { choosePlaces } from "./places.ts";
import type { Plan, Step } from "./plan.ts";
import { placeOptions, runPlan } from "./plan.ts";
import { runPreflight } from "./preflight.ts";
import { leftToAgent } from "./runtime-configuration.ts";
import type { ServiceInstaller } from "./service.ts";

const options = {
  from: { value: "FILE", of: "file", help: "the executable to install (default: the one that runs)" },
  ...placeOptions,
  subnet: {
    value: "CIDR",
    repeats: true,
    help: "addresses for this node's pods, for a configuration that is not there yet",
  },
  network: {
    value: "NAME",
    help: "the network's name in it (default pods)",
    rule: { wrong: wrongNetworkName, wanted: networkNameRule },
  },
  bridge: { value: "NAME", help: "the bridge, on Windows the host's virtual adapter (default pipette0)" },
  "node-address": { value: "IP", help: "Windows: address of the adapter that pods go out by" },
  "data-dir": { value: "DIR", of: "directory", help: `where leases lie (default ${paths.dataDir})` },
  check: { help: "Windows: only says whether this machine has what an installation needs, and what to do" },
  "no-libexec": {
    help: "the whole program goes under both names: nothing but --bin-dir is written, and each call takes longer",
  },
  "no-link": { help: "makes no link: the command is called by its path" },
  "executables-only": { help: "neither configuration nor service, and a link where --link-dir asks for one" },
  "no-service": { help: "registers and starts nothing: something else runs the agent" },
  "no-start": { help: "registers the service and leaves it as it runs, or does not" },
} as const;

/** `pipette install`; tests put another installer of services in its place. */
export const installCommandWith = (openInstaller: () => Promise<ServiceInstaller>) =>
  defineCommand({
    action: "install",
    about: `Puts this executable into ${dirname(paths.wholeProgram)}, the small one that it carries where the runtime looks for plugins, under
both names, and runs the agent as a service. The small one hands a call to the agent, and is the whole one where there is none.
An agent.yaml is written where there is none, and never written over. The runtime's own configuration comes last:
the agent writes it once it serves. Pods that run keep their network. What is right already stays as it is, so it can
be run again at any time: to upgrade, and to finish what was interrupted.`,
    options,
    exits: { 1: "failed; what was done is listed, and the next run goes on from there; --check: something is missing" },
    run: async (line, io) => {
      const { "dry-run": dryRun, json, progress } = line.options;
      const { places, warnings } = await choosePlaces(line.options);
      if (line.options.check) {
        const { "node-address": nodeAddress, "data-dir": dataDir = paths.dataDir, config } = line.options;
        const wish = { nodeAddress, places, dataDir, configFile: resolve(config ?? paths.agentConfig) };
        return await runPreflight(wish, json, io);
      }
      using _locks = dryRun ? undefined : await lockInstallation(directoriesOf(places));
      const path = io.env["PATH"] ?? io.env["Path"] ?? "";
      const plan = await planInstall(line, { places, path, warnings, openInstaller });
      return await runPlan(plan, { dryRun, json, progress }, io);
    },
  });

interface Surroundings {
  readonly places: Places;
  /** About these. */
  readonly warnings: readonly string[];
  /** The PATH of the installing user. */
  readonly path: string;
  readonly openInstaller: () => Promise<ServiceInstaller>;
}

async function planInstall(
  { options: given }: CommandLine<typeof options>,
  { places, path, warnings: aboutPlaces, openInstaller }: Surroundings,
): Promise<Plan> {
  const { steps: executables, whole } = await planExecutables(resolve(given.from ?? process.execPath), places);
  const changed = executables.some((step) => step.run !== undefined);
  const names = executablesAt(places);
  const [main] = executablesIn(places.bin);
  const before = await plansOf(names, (path) => planSweep(path));
  // On Windows a running agent keeps its old file in use until the service is restarted.
  const replaced = executables.some(({ action }) => action === "replace");
  const after = replaced && isWindows ? await plansOf(names, (path) => planSweep(path, true)) : [];
  const linkWish = { dir: given["link-dir"], none: given["no-link"], path };
  if (given["executables-only"]) {
    // In a container PATH is not the node's, so the link is made only if it was asked for.
    const link = await planLink(main, { ...linkWish, none: linkWish.none || linkWish.dir === undefined });
    return {
      steps: [...before, ...executables, ...link.steps, ...after],
      warnings: [...aboutPlaces, ...link.warnings],
    };
  }

  const configFile = resolve(given.config ?? paths.agentConfig);
  const { config, kept, steps: configuration } = await planConfig(configFile, valuesOf(given));
  const wish = { executableChanged: changed, leaveStopped: given["no-start"] };
  const { dataDir, socket, cni } = config;
  const definition = { executable: whole, configFile, dataDir, confDir: cni.confDir, socket };
  const service: readonly Step[] = given["no-service"]
    ? []
    : await (await openInstaller()).planInstall(definition, wish);
  const link = await planLink(main, linkWish);
  const unheard = kept ? valueNames.filter((name) => given[name] !== undefined && given[name].length > 0) : [];
  const warnings = [
    ...aboutPlaces,
    ...unheard.map(
      (name) => `"${configFile}" is there already, so --${name} was not used: what stands in the file holds`,
    ),
    ...link.warnings,
    ...addressWarnings(config),
    ...(await foreignBefore(config)),
  ];
  const configured = [
    ...(isWindows
      ? [(await import("./windows-files.windows.ts")).planProtection(config.dataDir, join(places.bin, lockName))]
      : []),
    ...(await planSweep(configFile)),
    ...configuration,
  ];
  return {
    steps: [
      ...before,
      ...executables,
      ...link.steps,
      ...configured,
      ...service,
      ...(await leftToAgent(config, places.bin)),
      ...after,
    ],
    warnings,
  };
}

const plansOf = async (files: readonly string[], plan: (path: string) => Promise<readonly Step[]>): Promise<Step[]> =>
  (await Promise.all(files.map(plan))).flat();

const valueNames = ["subnet", "network", "bridge", "node-address", "data-dir"] as const;

function valuesOf(given: CommandLine<typeof options>["options"]): ConfigValues {
  return {
    subnets: given.subnet,
    network: given.network ?? "pods",
    bridge: given.bridge ?? "pipette0",
    nodeAddress: given["node-address"],
    dataDir: given["data-dir"] === undefined ? undefined : resolve(given["data-dir"]),
  };
}
