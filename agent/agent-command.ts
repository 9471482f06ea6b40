import { open, readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { CniError } from "../shared/errors.ts";
import { createLogger, type Logger } from "../shared/log.ts";
import { paths } from "../shared/paths.ts";
import { isWindows } from "../shared/platform.ts";
import { type Libc, openLibc } from "../shared/server/libc.linux.ts";
import { notifySystemd } from "../shared/server/notify.ts";
import { Agent } from "./agent.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import { parseAgentConfig } from "./config/parse-agent-config.ts";
import { createBridgeDataPath } from "./datapath/bridge/mod.ts";

/** What a command at a terminal gets and gives. */
export interface CommandIo {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const usage = `Usage: pipette agent [--config FILE] [--check]

Runs the node agent until SIGTERM or SIGINT, with its log as JSON lines on stderr.

  --config FILE   its configuration (default ${paths.agentConfig}); conf/agent.yaml explains every key
  --check         only reads the configuration and lists what is wrong with it
  --help          this text
`;

/**
 * `pipette agent`.
 * @returns exit status: 0 stopped as asked or configuration in order, 1 failed, 2 wrong arguments
 */
export async function runAgentCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const options = readOptions(args);
  if (typeof options === "string") {
    io.stderr(`Cannot run the agent: ${options}\n\n${usage}`);
    return 2;
  }
  if (options.help) {
    io.stdout(usage);
    return 0;
  }
  const config = await readConfig(options.config, io);
  if (config === undefined) return 1;
  if (options.check) {
    io.stdout(`${options.config} is in order\n`);
    return 0;
  }
  if (isWindows) {
    io.stderr("Cannot run the agent: it serves no named pipe and no HNS yet, wanted Linux\n");
    return 1;
  }
  return serve(config, io);
}

function readOptions(args: readonly string[]): { config: string; check: boolean; help: boolean } | string {
  const options = {
    config: { type: "string", default: paths.agentConfig },
    check: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  } as const;
  try {
    const { values } = parseArgs({ args: [...args], options, allowPositionals: false });
    return { config: values.config, check: values.check, help: values.help };
  } catch (caught) {
    return caught instanceof Error ? caught.message : String(caught);
  }
}

async function readConfig(file: string, io: CommandIo): Promise<AgentConfig | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (caught) {
    io.stderr(`Cannot read "${file}": ${caught instanceof Error ? caught.message : caught}, wanted a readable file\n`);
    return undefined;
  }
  const parsed = parseAgentConfig(text, file);
  if (parsed.t === "ok") return parsed.config;
  for (const problem of parsed.problems) io.stderr(`${problem}\n`);
  return undefined;
}

async function serve(config: AgentConfig, io: CommandIo): Promise<number> {
  const logger = createLogger(config.logLevel, (line) => io.stderr(`${line}\n`));
  const libc = openLibc();
  // Whatever nobody waited for leaves the agent in a state that nobody knows: its supervisor starts it anew.
  const onFault = (caught: unknown): void => {
    logger.error("the agent ends after a fault of its own", { error: describe(caught) });
    process.exit(1);
  };
  process.on("uncaughtException", onFault);
  process.on("unhandledRejection", onFault);
  // Waited for from the beginning, so that a signal during the start is not lost.
  const signalled = stopSignal();
  try {
    const agent = await Agent.start(config, {
      logger,
      libc,
      createDataPath: () => createBridgeDataPath({ networks: config.networks, logger }),
      dataPathName: "bridge",
    });
    tell(io, libc, logger, "READY=1");
    void warmUp(logger);
    const lost = await Promise.race([
      signalled.then((signal) => void logger.info("signal", { signal })),
      agent.unreachable,
    ]);
    if (lost !== undefined) logger.error(lost);
    tell(io, libc, logger, "STOPPING=1");
    await agent.stop();
    return lost === undefined ? 0 : 1;
  } catch (caught) {
    const error = CniError.from(caught, "run the agent");
    logger.error(error.message, { code: error.code, details: error.details });
    return 1;
  } finally {
    process.off("uncaughtException", onFault);
    process.off("unhandledRejection", onFault);
  }
}

function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve(signal));
  });
}

function tell(io: CommandIo, libc: Libc, logger: Logger, state: string): void {
  const problem = notifySystemd(io.env, libc, state);
  if (problem !== undefined) logger.warn(problem);
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
    logger.debug("the executable could not be read ahead", { error: describe(caught) });
  }
}

const describe = (caught: unknown): string =>
  caught instanceof Error ? (caught.stack ?? caught.message) : String(caught);
