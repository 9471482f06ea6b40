import { open } from "node:fs/promises";
import { createLogger, type Logger } from "../../../shared/log.ts";
import { paths } from "../../../shared/os/paths.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { printable } from "../../../shared/printable.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { runDaemon, type Supervisor } from "../../../shared/server/daemon.ts";
import { openSystem } from "../../../shared/server/open-system.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { Agent } from "../../agent.ts";
import { openRegistry } from "../../cluster/open-registry.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { strangeKeysBeside } from "../../config/network-files.ts";
import { nameOf } from "../../config/nodes-config.ts";
import { openSecrets } from "../../config/own-files.ts";
import { openFiles, readConfig, readText } from "../../config/read-config.ts";
import { chooseDataPath } from "../../data-path-choice.ts";
import { DoctorLooks } from "../../doctor-looks.ts";
import { followConfig } from "../../followed-config.ts";
import { HealthServer } from "../../health-server.ts";
import type { AgentHttps, HttpsOptions } from "../../https-server.ts";
import type { ReadDocument } from "../../presence/mod.ts";
import type { Examined, LogLevels } from "../../views/mod.ts";
import { agentLogFileBytes, asService, logInto } from "./agent-supervision.ts";

const portRule = {
  wrong: (text: string) => (/^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535 ? undefined : "none"),
  wanted: "a port from 1 to 65535",
};

export const agentCommand = defineCommand({
  action: "run the agent",
  about: "Runs the node agent until SIGTERM or SIGINT, with its log as JSON lines on stderr.",
  options: {
    config: {
      value: "FILE",
      of: "file",
      help: `its configuration (default ${paths.agentConfig}); conf/agent.yaml explains every key`,
    },
    check: { help: "only reads the configuration and lists what is wrong with it" },
    "log-file": {
      value: "PATH",
      of: "file",
      help: `its log, in place of stderr: up to ${agentLogFileBytes / 1024 ** 2} MiB, and as much again in PATH.1`,
    },
    cleanup: { help: "takes back what agents have changed on this node, while none runs" },
    json: { help: "what was taken back, as one JSON object" },
    "follow-config": {
      help: "ends once the configuration has changed and an agent can start with it: for a supervisor that starts it anew",
    },
    "health-port": {
      value: "PORT",
      rule: portRule,
      help: "answers a kubelet's probes there, on 127.0.0.1: /startupz, /livez, /readyz",
    },
    service: { help: "Windows: as the service that the service control manager has started" },
  },
  exits: { 0: "stopped as asked, the configuration is in order, or nothing of ours is left on the node" },
  run: async ({ options }, console) => {
    const { config: file = paths.agentConfig, check, cleanup, json, service, "log-file": logFile } = options;
    const { "follow-config": followsConfig, "health-port": port } = options;
    if (cleanup) return takeBack(file, json, console);
    const io = logFile === undefined ? console : await logInto(logFile, console);
    if (service && followsConfig) {
      io.stderr(
        `Cannot follow the configuration as a service: Windows starts none anew that ends well, wanted one of both\n`,
      );
      return exitStatus.wrongArguments;
    }
    const watched = {
      ...(followsConfig ? { configFile: file } : {}),
      ...(port === undefined ? {} : { healthPort: Number(port) }),
    };
    return service
      ? asService(io, (supervisor) => run(file, check, io, { ...watched, supervisor }))
      : run(file, check, io, watched);
  },
});

/** What watches the agent while it runs. */
interface Watched {
  readonly supervisor?: Supervisor;
  /** When its content changes, the agent ends so that its supervisor restarts it. */
  readonly configFile?: string;
  readonly healthPort?: number;
}

async function run(file: string, check: boolean, io: TerminalIo, watched: Watched): Promise<number> {
  if (check) return checkText(file, io);
  const config = await readConfig(file, io);
  if (config === undefined) return exitStatus.failed;
  const status = await serve(config, io, watched);
  // A hanging call of HNS would keep the process from ending, and so its supervisor from restarting it. A service still
  // has to report its end.
  if (isWindows && watched.supervisor === undefined) process.exit(status);
  return status;
}

/**
 * For a valid file, warns of users who may read or change it; that is no failure, since the file may still be moved
 * elsewhere.
 */
async function checkText(file: string, io: TerminalIo): Promise<number> {
  const config = await readText(file, io);
  if (config === undefined) return exitStatus.failed;
  for (const is of openFiles(file, config)) io.stderr(`${printable(is)}; no agent starts with it there\n`);
  for (const { what } of openSecrets(config)) io.stderr(`${printable(what)}, wanted only root to read it\n`);
  for (const text of await strangeKeysBeside(config)) io.stderr(`${printable(text)}\n`);
  io.stdout(`${file} is in order\n`);
  return exitStatus.done;
}

async function takeBack(file: string, json: boolean, io: TerminalIo): Promise<number> {
  const config = await readConfig(file, io);
  if (config === undefined) return exitStatus.failed;
  const { cleanUp } = await import("../cleanup/clean-up.ts");
  return await cleanUp(config, json, io);
}

async function serve(config: AgentConfig, io: TerminalIo, watched: Watched): Promise<number> {
  const { supervisor, configFile, healthPort } = watched;
  let level = config.logLevel;
  const logger = createLogger(
    () => level,
    (line) => io.stderr(`${line}\n`),
  );
  const logLevels: LogLevels = {
    level: () => level,
    set: (next, by) => {
      // Said at the least of both, so that the log tells in any case why it says more or less from here on.
      if (next !== level) logger.error("the log level changes", { from: level, to: next, by });
      level = next;
    },
  };
  const system = await openSystem();
  await using followed = configFile === undefined ? undefined : followConfig(configFile, config, logger);
  await using health = new HealthServer();
  const node = nameOf(config.nodes ?? {});
  await using https = await openHttps(config, { logger, env: io.env, logLevels, node });
  await using presence = new AsyncDisposableStack();
  const context = { who: "the agent", logger, system, env: io.env, supervisor, restartWanted: followed?.changed };
  // Awaited here, so that the watchers end after the agent.
  return await runDaemon(context, async () => {
    if (healthPort !== undefined) health.listen(healthPort);
    const registry = config.nodes === undefined ? undefined : await openRegistry(config.nodes, logger);
    const agent = await Agent.start(config, {
      logger,
      system,
      meter: https?.meter,
      logLevels,
      examine: examineNode,
      ...(registry === undefined ? {} : { registry }),
      ...(followed === undefined ? {} : { refusedConfig: () => followed.refused() }),
      ...(await chooseDataPath(config, logger, https?.meter)),
    });
    health.started(agent);
    https?.read((samples) => agent.measure(samples));
    https?.tell(agent);
    if (https !== undefined) https.read(presence.use(looksOf(agent, logger)).measure);
    presence.use(await openPresence(config, agent, { logger, env: io.env }));
    void warmUp(logger);
    return agent;
  });
}

/** Loaded when somebody asks: no call of a runtime needs it. */
async function examineNode(config: AgentConfig): Promise<Examined> {
  const { examine, findingView } = await import("../doctor/examine.ts");
  const { findings, ...counted } = await examine(config);
  return { ...counted, findings: findings.map(findingView) };
}

/** The doctor looks seldom, so that a scrape need not. */
const looksOf = (agent: Agent, logger: Logger): DoctorLooks =>
  new DoctorLooks({
    look: () => agent.document({ kind: "findings", name: "", ifNotRevision: "", waitMs: 0 }, never),
    logger,
  });

/** Loaded where it is asked for: it holds the client of an API server. */
async function openPresence(
  { clusterState, nodes }: AgentConfig,
  agent: Agent,
  { logger, env }: Pick<HttpsOptions, "logger" | "env">,
): Promise<AsyncDisposable | undefined> {
  if (clusterState === undefined) return undefined;
  const { openNodePresence } = await import("../../presence/mod.ts");
  const document: ReadDocument = (kind) => agent.document({ kind, name: "", ifNotRevision: "", waitMs: 0 }, never);
  return openNodePresence(clusterState, nameOf(nodes ?? {}), { document, logger, env });
}

const never = new AbortController().signal;

/** Loaded where it is asked for: it holds an HTTPS server, and the client of an API server. */
async function openHttps({ metrics }: AgentConfig, options: HttpsOptions): Promise<AgentHttps | undefined> {
  if (metrics === undefined) return undefined;
  const { AgentHttps } = await import("../../https-server.ts");
  return new AgentHttps(metrics, options);
}

/**
 * Reads the executable once: the plugin is the same file, and its first start from a cold page cache
 * takes ten times as long as one from a warm one.
 */
async function warmUp(logger: Logger): Promise<void> {
  try {
    await using file = await open(process.execPath, "r");
    const buffer = new Uint8Array(1024 * 1024);
    while ((await file.read(buffer, 0, buffer.length)).bytesRead > 0);
  } catch (caught) {
    logger.debug("the executable could not be read ahead", { error: reasonOf(caught) });
  }
}
