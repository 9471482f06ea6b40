import { dlopen } from "bun:ffi";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { type Running, startCommand } from "./cni-call.ts";

const CLONE_NEWNET = 0x40000000;
const libc = dlopen("libc.so.6", {
  unshare: { args: ["i32"], returns: "i32" },
  setns: { args: ["i32", "i32"], returns: "i32" },
} as const).symbols;

/**
 * A network namespace without a name: it is held by an open file of this process and by whatever runs in it, so
 * nothing of it stays behind however the process ends.
 */
export class NetworkNamespace implements Disposable {
  readonly #file: number;

  private constructor(file: number) {
    this.#file = file;
  }

  /** The one that the calling thread is in. */
  static current(): NetworkNamespace {
    return new NetworkNamespace(openSync("/proc/thread-self/ns/net", "r"));
  }

  /** The one at `path`: a name in /run/netns, or a process's. */
  static at(path: string): NetworkNamespace {
    return new NetworkNamespace(openSync(path, "r"));
  }

  /** An empty one, down to its loopback. */
  static create(): NetworkNamespace {
    using home = NetworkNamespace.current();
    if (libc.unshare(CLONE_NEWNET) !== 0) throw new Error("Cannot make a network namespace: not allowed");
    const made = NetworkNamespace.current();
    home.enter();
    return made;
  }

  /** Where every process of the machine finds it, as long as it is not disposed: CNI_NETNS. */
  get path(): string {
    return `/proc/${process.pid}/fd/${this.#file}`;
  }

  /** Moves the calling thread there, for good. */
  enter(): void {
    // A process in the wrong namespace must not continue.
    if (libc.setns(this.#file, CLONE_NEWNET) !== 0) process.abort();
  }

  /**
   * Does something inside: sockets that it opens, processes that it starts and sysctls that it writes are the
   * namespace's. The work must be synchronous: anything awaited would run in another namespace.
   */
  readonly within = <T>(work: () => T): T => {
    using home = NetworkNamespace.current();
    this.enter();
    try {
      return work();
    } finally {
      home.enter();
    }
  };

  /** Starts a command inside. */
  start(command: readonly string[], stdin = ""): Running {
    return this.within(() => startCommand(command, {}, stdin));
  }

  /** Runs a command line, split at blanks, inside; answers its output. @throws where it fails */
  async run(command: string, stdin = ""): Promise<string> {
    const { status, stdout, stderr } = await this.start(command.split(" "), stdin).ended;
    if (status === 0) return stdout;
    throw new Error(`Cannot run "${command}": status ${status}, ${(stderr || stdout).trim()}`);
  }

  /** Runs lines of `ip`, all in one process. */
  async ip(...lines: readonly string[]): Promise<void> {
    await this.run("ip -batch -", `${lines.join("\n")}\n`);
  }

  /** Sets values below /proc/sys/net, by their paths there. */
  sysctl(values: Readonly<Record<string, number>>): void {
    this.within(() => {
      for (const [path, value] of Object.entries(values)) writeFileSync(`/proc/sys/net/${path}`, String(value));
    });
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}
