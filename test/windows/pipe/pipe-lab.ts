import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Wine } from "../wine/describe-wine.ts";
import { executables } from "../wine/prefix.ts";
import type { Ended, Program } from "../wine/program.ts";

export const pipe = "\\\\.\\pipe\\pipette-test";

const compiler = "x86_64-w64-mingw32-gcc";
const flags = ["-O2", "-s", "-Wall", "-Werror", "-municode"];

/** Programs on both ends of one pipe: ours, and one that does what ours never do (`pipe-tool.c` lists it). */
export class PipeLab {
  readonly pipette = join(executables, "pipette.exe");
  readonly #wine: Wine;
  readonly #running: Program[] = [];

  constructor(wine: Wine) {
    this.#wine = wine;
  }

  /** Once, before the first use of the tool. */
  async compileTool(): Promise<void> {
    const source = join(import.meta.dirname, "pipe-tool.c");
    await promisify(execFile)(compiler, [...flags, source, "-o", this.#toolPath, "-ladvapi32"]);
  }

  get #toolPath(): string {
    return this.#wine.prefix.unixPath("C:\\pipe-tool.exe");
  }

  /** Starts one of the tool's commands. */
  tool(...args: readonly string[]): Program {
    return this.#keep(this.#wine.prefix.start(this.#toolPath, { args }));
  }

  /** Runs one to its end. @returns what it printed, without the line's end */
  async toolSays(...args: readonly string[]): Promise<string> {
    return (await this.tool(...args).ended).stdout.trim();
  }

  /** A file for the tool, as it finds it. */
  file(name: string, content: Uint8Array): string {
    const path = `C:\\files\\${name}`;
    this.#wine.prefix.write(path, content);
    return path;
  }

  /** A pipe that the tool serves: each client gets the content, and after so many ms loses its connection. */
  async fakeServer(content: Uint8Array, keepMs: number, busyMs = 0): Promise<Program> {
    const words = ["serve", pipe, this.file("answer", content), String(keepMs), String(busyMs)];
    const server = this.tool(...words);
    await server.saying("serving as process");
    return server;
  }

  /** The same in a process without an administrator's rights, which takes the pipe as soon as it is free. */
  async restrictedServer(): Promise<Program> {
    const words = ["serve", pipe, this.file("answer", new Uint8Array(0)), "2000", "0"];
    const server = this.tool("restricted", "C:\\pipe-tool.exe", ...words);
    await server.saying("serving as process");
    return server;
  }

  /** Starts `pipette ipam serve`, and does not wait for it. */
  begin({ socket = pipe, dataDir = "C:\\data", restricted = false } = {}): Program {
    const args = ["ipam", "serve", "--socket", socket, "--data-dir", dataDir];
    const started = restricted
      ? this.#wine.prefix.start(this.#toolPath, { args: ["restricted", this.pipette, ...args] })
      : this.#wine.prefix.start(this.pipette, { args });
    return this.#keep(started);
  }

  /** Starts it and waits until it serves. */
  async serve(options: Parameters<PipeLab["begin"]>[0] = {}): Promise<Program> {
    const service = this.begin(options);
    await service.saying('"message":"ready"');
    return service;
  }

  /** Runs the plugin against whoever serves the pipe. */
  plugin(verb: "STATUS" | "ADD", conf: Readonly<Record<string, unknown>> = {}): Promise<Ended> {
    const ipam = { type: "pipette-ipam", ranges: [[{ subnet: "10.9.0.0/24" }]] };
    const whole = { cniVersion: "1.1.0", name: "pods", type: "pipette", socket: pipe, ipam, ...conf };
    const sandbox = { CNI_CONTAINERID: "sandbox", CNI_NETNS: "none", CNI_IFNAME: "eth0" };
    const env = { CNI_COMMAND: verb, CNI_PATH: "C:\\", ...(verb === "ADD" ? sandbox : {}) };
    return this.#wine.prefix.run(this.pipette, { env, stdin: JSON.stringify(whole) });
  }

  /** Ends whatever was started. For `afterEach`. */
  async clear(): Promise<void> {
    for (const program of this.#running.splice(0)) await program[Symbol.asyncDispose]();
  }

  #keep(program: Program): Program {
    this.#running.push(program);
    return program;
  }
}
