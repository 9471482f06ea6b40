import { asService, logInto } from "../../agent/commands/agent/agent-supervision.ts";
import { ExecutableReader } from "../../agent/commands/install/executable-reader.ts";
import { createLogger } from "../../shared/log.ts";
import { runDaemon } from "../../shared/server/daemon.ts";
import { openSystem } from "../../shared/server/open-system.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";

/**
 * A service that stands in for the agent: it is started with the agent's arguments, and is a service by the same code,
 * but what it serves is nothing. The file `refuse` beside its log has it fail at its start, `linger` has its stop last.
 */
const [, , , , , , , logFile = ""] = process.argv;
const beside = (name: string): Promise<boolean> => Bun.file(logFile.replace(/[^\\]+$/, name)).exists();

const console: TerminalIo = {
  stdout: () => undefined,
  stderr: () => undefined,
  stdin: async () => new Uint8Array(),
  env: process.env,
  stderrIsTerminal: false,
};

const io = await logInto(logFile, console);
const logger = createLogger("info", (line) => io.stderr(`${line}\n`));
const { digest } = await new ExecutableReader().contentsOf(process.execPath);
process.exitCode = await asService(io, async (supervisor) => {
  if (await beside("refuse")) return 3;
  return runDaemon({ who: "the stand-in", logger, system: await openSystem(), env: {}, supervisor }, async () => {
    logger.info("ready", { digest, pid: process.pid, arguments: process.argv.slice(2) });
    const alive = setInterval(() => undefined, 1_000);
    return {
      lost: new Promise<string>(() => undefined),
      settled: undefined,
      async stop() {
        clearInterval(alive);
        if (await beside("linger")) await Bun.sleep(1_500);
        logger.info("stopped");
      },
    };
  });
});
