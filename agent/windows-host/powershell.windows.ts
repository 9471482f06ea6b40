import { existsSync } from "node:fs";
import { execa } from "execa";
import { limits } from "../../shared/limits.ts";
import { createHostRunner, type Ended, type HostRunner, type ScriptProcess } from "./runner.ts";

/** A killed process that sits in a driver's call stays until the driver answers; nobody waits for that. */
const killGraceMs = 2000;

/** A node that is out of something for a moment cannot start a process. Nothing has run then, so it may be tried again. */
const startTries = 4;
const startAgainMs = 250;

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
  const options = {
    reject: false,
    stdin: "ignore",
    timeout: deadlineMs,
    killSignal: "SIGKILL",
    maxBuffer: limits.hostAnswerBytes,
    windowsHide: true,
    // The modules of another PowerShell, whose children inherit its path, do not load in this one.
    env: { PSModulePath: `${home}\\Modules` },
  } as const;
  const started = await start(() => execa(file, [...fixedArguments, encoded], options));
  if (started === undefined) return { stdout: "", stderr: "", failure: "Windows could not start its process" };
  const { child } = started;
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), deadlineMs + killGraceMs);
  const done = await Promise.race([child, late.promise]);
  clearTimeout(timer);
  if (done === undefined) {
    child.unref();
    return { stdout: "", stderr: "", failure: `it had not ended after ${deadlineMs} ms, and killing does not end it` };
  }
  return { stdout: done.stdout, stderr: done.stderr, failure: failureOf(done, deadlineMs) };
}

/**
 * In an object, for a child is also the promise of its end. What execa throws in place of an answer does not say why:
 * it stumbles over Bun's child without streams ("Attempted to assign to readonly property").
 */
async function start<T>(begin: () => T): Promise<{ readonly child: T } | undefined> {
  for (let left = startTries; left > 0; left--) {
    try {
      return { child: begin() };
    } catch {
      await Bun.sleep(startAgainMs);
    }
  }
  return undefined;
}

interface Result {
  readonly failed: boolean;
  readonly timedOut: boolean;
  readonly isMaxBuffer: boolean;
  readonly originalMessage?: string | undefined;
  readonly exitCode?: number | undefined;
}

function failureOf(done: Result, deadlineMs: number): string {
  if (!done.failed) return "";
  if (done.timedOut) return `it had not ended after ${deadlineMs} ms and was killed`;
  if (done.isMaxBuffer) return `it said more than ${limits.hostAnswerBytes} bytes and was killed`;
  return done.exitCode === undefined
    ? (done.originalMessage ?? "it did not run")
    : `its exit status was ${done.exitCode}`;
}
