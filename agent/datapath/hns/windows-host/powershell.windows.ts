import { existsSync } from "node:fs";
import { limits } from "../../../../shared/limits.ts";
import { runProgram } from "../../../platform/run-program.ts";
import { createHostRunner, type Ended, type HostRunner, type ScriptProcess } from "./runner.ts";

const fixedArguments = ["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand"] as const;

/**
 * Runs commands in Windows PowerShell 5.1, which every Windows Server has: by its full path, with the system's
 * modules only, no profile, no prompt, a deadline, and a bound on what it may say.
 * @param deadlineMs of each command; then its process is killed
 */
export function openHostRunner(deadlineMs: number = limits.hostCommandMs): HostRunner {
  const home = `${process.env["SystemRoot"] ?? "C:\\Windows"}\\System32\\WindowsPowerShell\\v1.0`;
  const execute: ScriptProcess = (script) => spawn(home, script, deadlineMs);
  return createHostRunner(execute);
}

async function spawn(home: string, script: string, deadlineMs: number): Promise<Ended> {
  const file = `${home}\\powershell.exe`;
  // A file that is missing is otherwise looked for by cmd.exe.
  if (!existsSync(file)) return { stdout: "", stderr: "", failure: `there is no "${file}"` };
  const encoded = Buffer.from(script, "utf16le").toString("base64");
  // The modules of another PowerShell, whose children inherit its path, do not load in this one.
  const env = { PSModulePath: `${home}\\Modules` };
  return runProgram(file, [...fixedArguments, encoded], { deadlineMs, env });
}
