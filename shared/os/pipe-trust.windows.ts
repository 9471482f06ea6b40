import { reasonOf } from "../reason.ts";
import { type Account, accountOfProcess } from "./account.windows.ts";
import { isPipeName, openPipes, pipeAccess } from "./pipe.windows.ts";
import { winError } from "./win32.windows.ts";

/** Describes a trusted server, in messages. */
export const trustedServer = "one that runs as SYSTEM or as an administrator";

const codes: Readonly<Record<number, string>> = {
  [winError.fileNotFound]: "ENOENT",
  [winError.accessDenied]: "EACCES",
  [winError.pipeBusy]: "EBUSY",
};

/**
 * How often and how long to wait for a free instance: with many plugins one is free within milliseconds, and the wait
 * blocks the caller.
 */
const busyWaits = { times: 5, ms: 20 };

/**
 * Whether the server of a pipe is trusted. Any program may create a pipe whose name is free, and must not get what is
 * meant for the agent.
 * @param pid of the process that serves a pipe, as `Pipes.serverOf` tells
 * @returns why it is not trusted, in words; `undefined` where it is
 * @throws {Error} where the process has ended, and its pipe with it
 */
export function whyNotTrusted(pid: number | undefined): string | undefined {
  if (pid === undefined) return "Windows does not say which process serves the pipe";
  let account: Account | undefined;
  try {
    account = accountOfProcess(pid);
  } catch (caught) {
    const is = reasonOf(caught);
    return `process ${pid}, which serves the pipe, cannot be looked at (${is})`;
  }
  if (account === undefined) throw new Error(`process ${pid}, which served the pipe, has ended`);
  if (account.isAdministrator) return undefined;
  const who = account.name === "" ? account.sid : `"${account.name}" (${account.sid})`;
  return `process ${pid}, which serves the pipe, runs as ${who} without the rights of an administrator`;
}

/**
 * Checks who serves a pipe. Once an administrator's process has it, others cannot add instances. The check costs the
 * server one connection without data.
 * @throws {UntrustedPipe} where it serves with less than an administrator's rights
 * @throws {Error} where it does not exist, has no free instance, or has gone again
 */
export function requireTrustedPipe(name: string): void {
  if (!isPipeName(name)) throw new Error(`"${name}" is no name of a pipe`);
  const pipes = openPipes();
  let opened = pipes.open(name, pipeAccess.look);
  for (let i = 0; i < busyWaits.times && opened.t === "failed" && opened.error === winError.pipeBusy; i++) {
    pipes.waitForInstance(name, busyWaits.ms);
    opened = pipes.open(name, pipeAccess.look);
  }
  if (opened.t === "failed") throw new Error(`connecting fails with ${codes[opened.error] ?? `error ${opened.error}`}`);
  try {
    const is = whyNotTrusted(pipes.serverOf(opened.handle));
    if (is !== undefined) throw new UntrustedPipe(is);
  } finally {
    pipes.close(opened.handle);
  }
}

/** Its message says who serves the pipe. */
export class UntrustedPipe extends Error {
  override readonly name = "UntrustedPipe";
}
