import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { compileSmallProgram, type Places } from "../../../build/forward.ts";

export const buildId = "000102030405060708090a0b0c0d0e0f";

/** Answers whole requests: what PROTOCOL.md's server does, and what no server should do. */
export type Behaviour = (socket: Socket, request: Buffer) => unknown;

/** What stand-in.c says. */
export interface Whole {
  readonly arguments: readonly string[];
  readonly variables: readonly string[];
  readonly environmentBytes: number;
  readonly descriptors: readonly number[];
  /** Signal numbers are bits, the lowest for 1. */
  readonly ignored: bigint;
  readonly stdinBytes: number;
  readonly stdinSum: number;
}

export interface Ended {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
  /** Where the whole program was executed. */
  readonly whole?: Whole;
}

export interface Started {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  /** argv[0] */
  readonly name?: string;
  readonly arguments?: readonly string[];
  /** Shell words around `"$@"`, such as redirections; absent: it is started directly. */
  readonly shell?: string;
}

/** The small program between runtimes and daemons that behave as a test likes, in a directory of its own. */
export class ForwardLab {
  readonly directory = mkdtempSync(join(tmpdir(), "forward-"));
  readonly program = join(this.directory, "pipette");
  readonly standIn = join(this.directory, "whole");
  readonly places: Places = {
    agentSocket: join(this.directory, "cni.sock"),
    ipamSocket: join(this.directory, "ipam.sock"),
    wholeProgram: this.standIn,
  };
  readonly #open: (() => unknown)[] = [];
  #sanitized = false;

  /** @param sanitized with the sanitizers of gcc, which end it where C's rules are broken */
  async compile(sanitized: boolean): Promise<void> {
    this.#sanitized = sanitized;
    await this.#compile(this.program, this.places);
    await promisify(execFile)("gcc", ["-o", this.standIn, join(import.meta.dirname, "stand-in.c")]);
    // A listener of another user binds there.
    mkdirSync(join(this.directory, "theirs"));
    chmodSync(this.directory, 0o711);
    chmodSync(join(this.directory, "theirs"), 0o777);
  }

  /** The small program with other places. */
  async variant(places: Partial<Places>): Promise<string> {
    const outfile = join(this.directory, "variant");
    await this.#compile(outfile, { ...this.places, ...places });
    return outfile;
  }

  #compile(outfile: string, places: Places): Promise<void> {
    return compileSmallProgram({ system: "linux", buildId, places, outfile, sanitized: this.#sanitized });
  }

  /** Listens until `clear`. @returns the requests that came, and how many connections have ended */
  async serve(behaviour: Behaviour, path = this.places.agentSocket): Promise<{ requests: Buffer[]; ended: number }> {
    const seen = { requests: [] as Buffer[], ended: 0 };
    const server: Server = createServer((socket) => {
      let request = Buffer.alloc(0);
      socket.on("data", (part: Buffer) => {
        request = Buffer.concat([request, part]);
        if (request.length < requestBytes(request)) return;
        seen.requests.push(request);
        void behaviour(socket, request);
      });
      socket.on("error", () => undefined);
      socket.on("close", () => seen.ended++);
    });
    await new Promise<void>((done) => server.listen(path, done));
    this.#open.push(
      () => server.close(),
      () => rmSync(path, { force: true }),
    );
    return seen;
  }

  /** listener.pl, once it is ready. @returns what it has said */
  async listener(path: string, uid: number, kind: "full" | "open"): Promise<() => string> {
    const script = join(import.meta.dirname, "listener.pl");
    const child = Bun.spawn(["perl", script, path, String(uid), kind], { stdout: "pipe", stderr: "inherit" });
    this.#open.push(
      () => child.kill("SIGKILL"),
      () => rmSync(path, { force: true }),
    );
    let said = "";
    const ready = Promise.withResolvers<void>();
    void (async () => {
      for await (const part of child.stdout) {
        said += new TextDecoder().decode(part);
        if (said.includes("ready")) ready.resolve();
      }
      ready.resolve();
    })();
    await ready.promise;
    return () => said;
  }

  start({ env = {}, stdin = "{}", name = "/opt/cni/bin/pipette", shell, ...rest }: Started, program = this.program) {
    const direct = [program, ...(rest.arguments ?? [])];
    return Bun.spawn(shell === undefined ? direct : ["/bin/bash", "-c", shell, "bash", ...direct], {
      argv0: shell === undefined ? name : "bash",
      env: { CNI_COMMAND: "ADD", ...env },
      stdin: typeof stdin === "string" ? new TextEncoder().encode(stdin) : stdin,
      stdout: "pipe",
      stderr: "pipe",
    });
  }

  async call(started: Started = {}, program = this.program): Promise<Ended> {
    const began = performance.now();
    const child = this.start(started, program);
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    const status = await child.exited;
    const ms = performance.now() - began;
    const ended = { status: child.signalCode === null ? status : null, signal: child.signalCode, stdout, stderr, ms };
    return stdout.startsWith("argument ") ? { ...ended, whole: wholeOf(stdout) } : ended;
  }

  clear(): void {
    for (const close of this.#open.splice(0)) close();
  }

  remove(): void {
    this.clear();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

const requestBytes = (request: Buffer): number =>
  request.length < 48 ? 48 : 48 + request.readUInt32LE(4) + request.readUInt32LE(8);

function wholeOf(stdout: string): Whole {
  const lines = stdout.trimEnd().split("\n");
  const all = (key: string): string[] =>
    lines.filter((line) => line.startsWith(`${key} `)).map((line) => line.slice(key.length + 1));
  const numbers = (key: string): number[] => (all(key)[0] ?? "").split(" ").map(Number);
  const [stdinBytes = -1, stdinSum = -1] = numbers("stdin");
  return {
    arguments: all("argument"),
    variables: all("variable"),
    environmentBytes: numbers("environment")[0] ?? -1,
    descriptors: numbers("descriptors").sort((a, b) => a - b),
    ignored: BigInt(`0x${all("ignored")[0] ?? "0"}`),
    stdinBytes,
    stdinSum,
  };
}

/** As stand-in.c sums up what it reads. */
export function sumOf(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) sum = (sum * 31 + byte) % 1_000_000_007;
  return sum;
}

const kinds = { done: 1, pass: 2, taken: 3 } as const;

export interface AnswerFields {
  readonly status?: number;
  readonly stdout?: string | Uint8Array;
  readonly stderr?: string;
  readonly moreMs?: number;
  /** Instead of the true ones. */
  readonly stdoutBytes?: number;
  readonly stderrBytes?: number;
}

/** An answer of PROTOCOL.md; by a number, of a kind that there is not. */
export function answer(kind: keyof typeof kinds | number, fields: AnswerFields = {}): Buffer {
  const { status = 0, stdout = "", stderr = "", moreMs = 0 } = fields;
  const [out, err] = [Buffer.from(stdout as string), Buffer.from(stderr)];
  const header = Buffer.alloc(24);
  header.set([0, 0x50, 0x41, 1]);
  header.writeUInt32LE(typeof kind === "number" ? kind : kinds[kind], 4);
  header.writeUInt32LE(status, 8);
  header.writeUInt32LE(fields.stdoutBytes ?? out.length, 12);
  header.writeUInt32LE(fields.stderrBytes ?? err.length, 16);
  header.writeUInt32LE(moreMs, 20);
  return Buffer.concat([header, out, err]);
}
