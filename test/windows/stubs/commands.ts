import type { Field } from "./channel.ts";

/** A command that was run. */
export interface Command {
  /** `powershell`, `netsh` or `route`. */
  readonly program: string;
  readonly args: readonly string[];
  /** Of PowerShell: what `-EncodedCommand` says; empty where there is none. */
  readonly script: string;
}

export interface CommandAnswer {
  readonly status: number;
  readonly stdout?: string;
  readonly stderr?: string;
}

/** Without an answer a command fails: silence must not look like success. */
const unanswered: CommandAnswer = { status: 97, stderr: "The test has no answer for this command\r\n" };

/** What PowerShell, netsh and route answer. */
export class Commands {
  readonly log: Command[] = [];
  /** Set by a test; `undefined` leaves a command without an answer. */
  answerWith: (command: Command) => CommandAnswer | undefined | Promise<CommandAnswer | undefined> = () => undefined;

  /** Answers `command.c`: status, output, errors. */
  async answer([, path, ...args]: readonly Field[]): Promise<readonly Field[]> {
    const given = args.map((arg) => arg ?? "");
    const program = /([^\\]*)\.exe$/i.exec(path ?? "")?.[1]?.toLowerCase() ?? "";
    const encoded = given[given.findIndex((arg) => arg.toLowerCase() === "-encodedcommand") + 1];
    const isEncoded = given.some((arg) => arg.toLowerCase() === "-encodedcommand");
    const script = isEncoded ? Buffer.from(encoded ?? "", "base64").toString("utf16le") : "";
    const command: Command = { program, args: given, script };
    this.log.push(command);
    const { status, stdout, stderr } = (await this.answerWith(command)) ?? unanswered;
    return [String(status), stdout ?? "", stderr ?? ""];
  }
}
