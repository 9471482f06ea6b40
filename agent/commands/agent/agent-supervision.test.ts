import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { runAt } from "../../../test/support/terminal-run.ts";
import { agentCommand } from "./agent-command.ts";
import { agentLogFileBytes, logInto } from "./agent-supervision.ts";

const linesOf = (file: string): unknown[] =>
  readFileSync(file, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

function terminal(): { readonly io: TerminalIo; readonly said: string[] } {
  const said: string[] = [];
  const stderr = (text: string): void => void said.push(text);
  return { io: { stdout: stderr, stderr, stdin: async () => new Uint8Array(), env: {}, stderrIsTerminal: true }, said };
}

test("with --log-file what the agent says goes there, sentences with their time", async () => {
  using scratch = scratchDir();
  const file = join(scratch.path, "log", "agent.log");
  const missing = join(scratch.path, "agent.yaml");
  const { status, stderr } = await runAt("pipette agent", agentCommand, ["--config", missing, "--log-file", file]);
  expect([status, stderr]).toEqual([1, ""]);
  expect(linesOf(file)).toEqual([
    {
      time: expect.stringMatching(/^\d{4}-/),
      level: "error",
      message: expect.stringContaining(`Cannot read "${missing}"`),
    },
  ]);
});

test("a full log becomes the one before, and the newest line is in the new one", async () => {
  using scratch = scratchDir();
  const file = join(scratch.path, "agent.log");
  const io = await logInto(file, terminal().io);
  writeFileSync(file, `${"x".repeat(agentLogFileBytes - 1)}\n`);
  io.stderr('{"message":"last of the old"}\n');
  io.stderr('{"message":"first of the new"}\n{"message":"second"}\n');
  expect(linesOf(file)).toEqual([{ message: "first of the new" }, { message: "second" }]);
  expect(readFileSync(`${file}.1`, "utf8")).toMatch(/x\n\{"message":"last of the old"\}\n$/);
});

test("what cannot be written there is said on stderr, with the reason", async () => {
  using scratch = scratchDir();
  const { io: console, said } = terminal();
  const io = await logInto(scratch.path, console);
  io.stderr('{"message":"lost?"}\n');
  expect(said.join("")).toMatch(/^\{"message":"lost\?"\}\nCannot write the log ".*, wanted a file/);
  expect(existsSync(`${scratch.path}.1`)).toBe(false);
});

test("--service is refused where there is no service control manager", async () => {
  const { status, stderr } = await runAt("pipette agent", agentCommand, ["--service"]);
  expect(status).toBe(1);
  expect(stderr).toContain("this is not Windows");
});
