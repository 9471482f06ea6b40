import { accountOfProcess } from "../../shared/windows/account.windows.ts";
import { isPipeName, openPipes, pipeAccess } from "../../shared/windows/pipe.windows.ts";
import { winError } from "../../shared/windows/win32.windows.ts";

const codes: Readonly<Record<number, string>> = {
  [winError.fileNotFound]: "ENOENT",
  [winError.accessDenied]: "EACCES",
  [winError.pipeBusy]: "EBUSY",
};

/**
 * Looks whose pipe it is. Any program may make one of a name that is free; once an administrator's process has it,
 * others cannot add to it. The look costs the server one connection that says nothing.
 * @throws {Error} where it is not there, or serves with less than an administrator's rights
 */
export function requireTrustedPipe(name: string): void {
  if (!isPipeName(name)) throw new Error(`"${name}" is no name of a pipe`);
  const pipes = openPipes();
  const opened = pipes.open(name, pipeAccess.look);
  if (opened.t === "failed") throw new Error(`connecting fails with ${codes[opened.error] ?? `error ${opened.error}`}`);
  try {
    const pid = pipes.serverOf(opened.handle);
    if (pid === undefined) throw new Error("Windows does not say which process serves the pipe");
    const account = accountOfProcess(pid);
    if (!account.isAdministrator)
      throw new Error(`process ${pid}, which serves the pipe, runs as "${account.name}" (${account.sid})`);
  } finally {
    pipes.close(opened.handle);
  }
}
