import { CniCode, CniError } from "../../shared/errors.ts";
import { logLevels } from "../../shared/log.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { printableLines } from "../../shared/terminal/printable.ts";
import { formatTable } from "../../shared/terminal/table.ts";
import { askEach } from "../ask-nodes.ts";
import { nodeOptions, openSource, wayOptions } from "../ways.ts";
import { chosenNodes } from "./chosen-nodes.ts";

const { bundle: _bundle, ...liveWays } = wayOptions;

export const logLevelCommand = defineCommand({
  action: "change the log level",
  about: `Shows what agents log, or changes it from now on, until they end: the next start goes by the configuration. By the API
server that is a right of its own.`,
  operands: [
    { name: "LEVEL", help: "from now on; without it the present one is shown", of: logLevels, optional: true },
  ],
  options: { ...nodeOptions, ...liveWays },
  exits: { 0: "done", 2: "an agent could not be asked, or wrong arguments" },
  run: async ({ options, operands: [level] }, io) => {
    const signal = new AbortController().signal;
    try {
      const elsewhere = options["all-nodes"] || options.node.length > 0;
      await using source = await openSource({ ...options, bundle: undefined }, elsewhere, io);
      const nodes = await chosenNodes(source, options, signal);
      const { answers, failures } = await askEach(nodes, signal, async (node, each) => {
        if (source.logLevel === undefined)
          throw new CniError(CniCode.notAvailable, `Cannot change the log level: ${source.title} has no agent`);
        return await source.logLevel(node, level, each);
      });
      if (answers.length > 0) io.stdout(formatTable(answers.map(({ node, answer }) => [node, answer])));
      for (const { reason } of failures) io.stderr(`${printableLines(reason)}\n`);
      return failures.length > 0 ? exitStatus.cannotTell : exitStatus.done;
    } catch (caught) {
      io.stderr(`${printableLines(CniError.from(caught, "change the log level").message)}\n`);
      return exitStatus.cannotTell;
    }
  },
});
