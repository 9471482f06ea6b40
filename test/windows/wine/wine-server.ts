import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/**
 * Wine, with what it starts in turn, always at the same addresses. Otherwise the kernel puts the heap of one start in
 * some 6,000 over the page at 0x7ffe0000 that Windows' programs share with their kernel: Wine then ends, or fails to
 * start a program, with status 1 and, without its messages, no word.
 */
export const wineCommand = ["/usr/bin/setarch", "--addr-no-randomize", "/usr/lib/wine/wine64"] as const;
const serverProgram = "/usr/lib/wine/wineserver64";
const startMs = 10_000;
const patienceMs = 3_000;

/**
 * What every process of Wine gets beside its prefix: no messages of its own, no questions about browsers and .NET, and
 * our stub in place of its own netsh, which says nothing and succeeds.
 */
export function wineEnvironment(prefix: string): Record<string, string> {
  return {
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: prefix,
    LC_ALL: "C.UTF-8",
    WINEPREFIX: prefix,
    WINEDEBUG: "-all",
    WINEDLLOVERRIDES: "mscoree=;mshtml=;netsh.exe=n;powershell.exe=n",
  };
}

/**
 * The server of one prefix. It stays until it is stopped, so that a process does not pay for its start, and ends with
 * this process however that ends; every Windows process of the prefix ends with the server.
 */
export class WineServer implements AsyncDisposable {
  readonly #server: ChildProcess;
  readonly #prefix: string;

  private constructor(prefix: string, server: ChildProcess) {
    this.#prefix = prefix;
    this.#server = server;
  }

  static async start(prefix: string): Promise<WineServer> {
    // In the foreground it stays a child of this process; the kernel then kills it with its parent.
    const command = ["--pdeathsig", "KILL", "--", serverProgram, "--foreground", "--persistent"];
    const server = spawn("setpriv", command, { env: wineEnvironment(prefix), stdio: "ignore" });
    // A client that does not find it would start one of its own, which would not end with this process.
    for (const until = performance.now() + startMs; !isListening(prefix); await Bun.sleep(5)) {
      if (server.exitCode === null && performance.now() < until) continue;
      server.kill("SIGKILL");
      throw new Error(`Cannot start Wine's server for "${prefix}": it does not listen, wanted it within ${startMs} ms`);
    }
    const started = new WineServer(prefix, server);
    // The first process starts Windows' services, which keep its output open: so nobody may read it.
    await started.run(["cmd", "/c", "exit"]);
    return started;
  }

  /** Runs one of Wine's own programs, without input and output. @throws where its status is not 0 */
  async run(command: readonly string[]): Promise<void> {
    const [file, ...args] = wineCommand;
    const child = spawn(file, [...args, ...command], { env: wineEnvironment(this.#prefix), stdio: "ignore" });
    const [status] = await once(child, "exit");
    if (status !== 0) throw new Error(`Cannot run "${command.join(" ")}" in Wine: status ${status}, wanted 0`);
  }

  /** Ends every process of the prefix. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.exitCode === null && this.#server.signalCode === null) {
      const ended = once(this.#server, "exit");
      // As `wineserver --kill` does, which now and then does not come back.
      this.#server.kill("SIGINT");
      const timer = setTimeout(() => this.#server.kill("SIGKILL"), patienceMs);
      await ended;
      clearTimeout(timer);
    }
    await endProcesses(this.#prefix);
    removeServerDirectory(this.#prefix);
  }
}

/**
 * Processes end with their server, which they notice at their next call of it; one that was being started meanwhile may
 * never make one. So who has the prefix in its environment is waited for, and killed.
 */
async function endProcesses(prefix: string): Promise<void> {
  for (const until = performance.now() + patienceMs; ; await Bun.sleep(10)) {
    const left = processesOf(prefix);
    if (left.length === 0) return;
    if (performance.now() < until) continue;
    for (const pid of left) process.kill(pid, "SIGKILL");
    return;
  }
}

/** Unix processes of the prefix, the server aside. */
export function processesOf(prefix: string): readonly number[] {
  const wanted = `WINEPREFIX=${prefix}`;
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    try {
      return readFileSync(join("/proc", name, "environ"), "utf8")
        .split("\0")
        .includes(wanted)
        ? [Number(name)]
        : [];
    } catch {
      // It has ended.
      return [];
    }
  });
}

/** Debian's server keeps its socket in a directory under /tmp, whose name it leaves in the prefix, and removes neither. */
export function removeServerDirectory(prefix: string): void {
  const directory = serverDirectory(prefix);
  if (directory === undefined) return;
  rmSync(directory, { recursive: true, force: true });
  rmSync(join(prefix, nameFile), { force: true });
}

const nameFile = "wineserver";

/** `undefined` where no server was ever started. */
function serverDirectory(prefix: string): string | undefined {
  const file = join(prefix, nameFile);
  const name = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  return /^wine-\w{6}$/.test(name) ? join("/tmp", name) : undefined;
}

function isListening(prefix: string): boolean {
  const directory = serverDirectory(prefix);
  if (directory === undefined || !existsSync(directory)) return false;
  return readdirSync(directory).some((name) => existsSync(join(directory, name, "socket")));
}
