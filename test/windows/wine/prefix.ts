import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Ended, Program, type ProgramOptions } from "./program.ts";
import { copyTemplate, driveOf, prefixName } from "./template.ts";
import { WineServer, wineCommand, wineEnvironment } from "./wine-server.ts";

/** Our executables, as `npm run build` leaves them. */
export const executables = join(import.meta.dirname, "../../../dist/windows-x64");

/** A Windows of its own: drive C, registry, pipes, mutexes. Disposing of it ends every process in it. */
export class WinePrefix implements AsyncDisposable {
  /** Unix path of the prefix. */
  readonly directory: string;
  readonly #server: WineServer;

  private constructor(directory: string, server: WineServer) {
    this.directory = directory;
    this.#server = server;
  }

  /** @param runDirectory `inject("wineDirectory")` in a test */
  static async make(runDirectory: string): Promise<WinePrefix> {
    mkdirSync(runDirectory, { recursive: true });
    const directory = join(mkdtempSync(join(runDirectory, "file-")), prefixName);
    await copyTemplate(runDirectory, directory);
    return new WinePrefix(directory, await WineServer.start(directory));
  }

  /** Unix path of a file on drive C, as in `prefix.unixPath("C:\\ProgramData\\pipette")`. */
  unixPath(windowsPath: string): string {
    if (!/^[Cc]:\\/.test(windowsPath)) throw new Error(`Cannot find "${windowsPath}", wanted a path on drive C`);
    return join(driveOf(this.directory), ...windowsPath.slice(3).split("\\"));
  }

  /** Writes a file on drive C, and its directory. */
  write(windowsPath: string, content: string | Uint8Array): void {
    const path = this.unixPath(windowsPath);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }

  /** Starts a program. @param executable Unix path, or a name that Wine finds */
  start(executable: string, options: ProgramOptions = {}): Program {
    const env = { ...wineEnvironment(this.directory), ...options.env };
    return new Program([...wineCommand, executable, ...(options.args ?? [])], env, options);
  }

  /** Runs a program to its end. */
  run(executable: string, options: ProgramOptions = {}): Promise<Ended> {
    return this.start(executable, options).ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
    rmSync(dirname(this.directory), { recursive: true, force: true });
  }
}

/** How a Windows program writes the Unix path of a file. */
export const onDriveZ = (unixPath: string): string => `Z:${unixPath.replaceAll("/", "\\")}`;
