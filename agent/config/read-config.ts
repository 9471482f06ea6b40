import { readFile } from "node:fs/promises";
import { isDenial, isUnprivileged, whoMay } from "../../shared/os/rights.ts";
import { printable } from "../../shared/printable.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import type { AgentConfig } from "./agent-config.ts";
import { filesOf, openToOthers } from "./own-files.ts";
import { parseAgentConfig } from "./parse-agent-config.ts";

/**
 * Reads the agent's configuration for a command. If it is invalid, or it or a file that it names can be changed by
 * others, prints each fault and answers nothing.
 */
export async function readConfig(file: string, io: TerminalIo): Promise<AgentConfig | undefined> {
  const config = await readText(file, io);
  const open = config === undefined ? [] : openFiles(file, config);
  for (const is of open) io.stderr(`${printable(`Cannot go by "${file}": ${is}`)}\n`);
  return open.length === 0 ? config : undefined;
}

/** The same without checking who may change the file, for commands that only check its text. */
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

/** Sentences about files that others can change. */
export const openFiles = (file: string, config: AgentConfig): readonly string[] =>
  filesOf(file, config).flatMap((path) => openToOthers(path) ?? []);

/** The middle and the end of a message about an agent.yaml that could not be read. */
export function unreadFile(caught: unknown): string {
  if (isDenial(caught) && isUnprivileged()) return `this user may not read it (EACCES), wanted ${whoMay}`;
  if (caught instanceof Error && "code" in caught && caught.code === "ENOENT")
    return 'it is not there, wanted the agent\'s configuration: "pipette install" writes one, --config names another';
  return `${reasonOf(caught)}, wanted a readable file`;
}
