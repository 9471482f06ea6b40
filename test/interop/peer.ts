import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import { freeze } from "../support/freeze.ts";

/** A server in a process of its own, so that it can be stopped and killed. */
export interface Peer extends AsyncDisposable {
  readonly socket: string;
  /** Stops it from running: it keeps its connections and answers nothing. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Ends it at once, its socket file left behind. */
  kill(): Promise<void>;
}

/** Starts the program and waits for its line "ready". */
export async function startPeer(command: string, args: readonly string[], socket: string): Promise<Peer> {
  rmSync(socket, { force: true });
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  const kill = (): Promise<void> => end(child);
  const firstLine = once(createInterface({ input: child.stdout }), "line");
  const ended = once(child, "exit").then(() => ["ended"]);
  const [line] = await Promise.race([firstLine, ended]);
  if (line !== "ready") {
    await kill();
    throw new Error(`Cannot start ${command}: its first line is "${line}", wanted "ready"`);
  }
  return {
    socket,
    freeze: () => freeze(child),
    thaw: () => void child.kill("SIGCONT"),
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}
