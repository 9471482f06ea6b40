import { readFile } from "node:fs/promises";
import { isDenial, isUnprivileged, whoMay } from "../../shared/os/rights.ts";
import { printable } from "../../shared/printable.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import type { AgentConfig } from "./agent-config.ts";
import { filesOf, openToOthers } from "./own-files.ts";
import { parseAgentConfig } from "./parse-agent-config.ts";

/**
 * Reads the agent's configuration for a command; says what is wrong with it, line by line, where it answers nothing: also
 * where others may change it, or a file that it names.
 */
export async function readConfig(file: string, io: TerminalIo): Promise<AgentConfig | undefined> {
  const config = await readText(file, io);
  const open = config === undefined ? [] : openFiles(file, config);
  for (const is of open) io.stderr(`${printable(`Cannot go by "${file}": ${is}`)}\n`);
  return open.length === 0 ? config : undefined;
}

/** The same for whoever only looks at the text, wherever it lies. */
export async function readText(file: string, io: TerminalIo): Promise<AgentConfig | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (caught) {
    io.stderr(`${printable(`Cannot read "${file}": ${unreadFile(caught)}`)}\n`);
    return undefined;
  }
  const parsed = parseAgentConfig(text, file);
  if (parsed.t === "ok") return parsed.config;
  for (const problem of parsed.problems) io.stderr(`${printable(problem)}\n`);
  return undefined;
}

/** What lets others change what the agent goes by. */
export const openFiles = (file: string, config: AgentConfig): readonly string[] =>
  filesOf(file, config).flatMap((path) => openToOthers(path) ?? []);

/** The middle and the end of a message about an agent.yaml that could not be read. */
export function unreadFile(caught: unknown): string {
  if (isDenial(caught) && isUnprivileged()) return `this user may not read it (EACCES), wanted ${whoMay}`;
  if (caught instanceof Error && "code" in caught && caught.code === "ENOENT")
    return 'it is not there, wanted the agent\'s configuration: "pipette install" writes one, --config names another';
  return `${reasonOf(caught)}, wanted a readable file`;
}
