import { open, readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { createLogger, type Logger } from "../shared/log.ts";
import { paths } from "../shared/paths.ts";
import { isWindows } from "../shared/platform.ts";
import { runDaemon } from "../shared/server/daemon.ts";
import { openLibc } from "../shared/server/libc.linux.ts";
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

function serve(config: AgentConfig, io: CommandIo): Promise<number> {
  const logger = createLogger(config.logLevel, (line) => io.stderr(`${line}\n`));
  const libc = openLibc();
  return runDaemon({ who: "the agent", logger, libc, env: io.env }, async () => {
    const agent = await Agent.start(config, {
      logger,
      libc,
      createDataPath: () => createBridgeDataPath({ networks: config.networks, logger }),
      dataPathName: "bridge",
    });
    void warmUp(logger);
    return agent;
  });
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
    logger.debug("the executable could not be read ahead", { error: String(caught) });
  }
}
