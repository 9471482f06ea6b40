import { readFile } from "node:fs/promises";
import { printable } from "../../shared/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import type { AgentConfig } from "./agent-config.ts";
import { parseAgentConfig } from "./parse-agent-config.ts";

/** Reads the agent's configuration for a command; says what is wrong with it, line by line, where it answers nothing. */
export async function readConfig(file: string, io: TerminalIo): Promise<AgentConfig | undefined> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (caught) {
    io.stderr(`Cannot read "${file}": ${caught instanceof Error ? caught.message : caught}, wanted a readable file\n`);
    return undefined;
  }
  const parsed = parseAgentConfig(text, file);
  if (parsed.t === "ok") return parsed.config;
  for (const problem of parsed.problems) io.stderr(`${printable(problem)}\n`);
  return undefined;
}
