import type { DocumentSource } from "../../operator/mod.ts";
import { type CommandPlaces, type OwnProgram, PageCommands, PageServer, pageFiles } from "../../operator/page/mod.ts";
import { createLogger } from "../../shared/log.ts";

/** What a command of the page was started with, and what it is to print. */
export class ScriptedProgram implements OwnProgram {
  readonly started: { readonly args: readonly string[]; readonly input: string }[] = [];
  /** By the first words of the arguments. */
  readonly answers = new Map<string, { readonly status: number; readonly json: unknown }>();

  async run(args: readonly string[], { input }: { readonly input: string }) {
    this.started.push({ args, input });
    const found = [...this.answers].find(([words]) => args.join(" ").startsWith(words))?.[1];
    const stderr = found === undefined ? `Cannot run "${args.join(" ")}": nobody has said what it prints` : "";
    const stdout = found === undefined ? "" : JSON.stringify(found.json);
    return { stdout, stderr, failure: "", status: found?.status ?? 2 };
  }
}

/** The page of a source, as `pipette ui` serves it. */
export class ServedPage implements AsyncDisposable {
  readonly program = new ScriptedProgram();
  readonly log: string[] = [];
  #server: PageServer | undefined;

  static async of(source: DocumentSource, places: CommandPlaces = {}): Promise<ServedPage> {
    const page = new ServedPage();
    const logger = createLogger("debug", (line) => page.log.push(line));
    const commands = new PageCommands(page.program, places);
    page.#server = await PageServer.start({ source, commands, files: await pageFiles(), logger, port: 0 });
    return page;
  }

  /** With its token. */
  get url(): string {
    return this.#server?.url ?? "";
  }

  /** Without a path. */
  get origin(): string {
    return new URL(this.url).origin;
  }

  get token(): string {
    return new URL(this.url).hash.replace("#token=", "");
  }

  at(view: string): string {
    return `${this.origin}/#/${view}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
  }
}
