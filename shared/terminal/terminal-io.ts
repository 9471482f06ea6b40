import type { ClusterAccess } from "../kubernetes/mod.ts";

/** Of a command that a server runs in its own process for somebody. */
export interface HostedCommand {
  /** The API server with the rights of whoever asks, in place of what options name. */
  readonly access: ClusterAccess;
  readonly watch: {
    /** Others have had their turn. */
    rested(): void;
    /** Called now and then in long work. @throws {Error} where it has kept the server from others for too long */
    works(): void;
  };
}

/** What a command at a terminal gets from the process around it. */
export interface TerminalIo {
  stdout(text: string): void;
  stderr(text: string): void;
  /** Standard input to its end. */
  stdin(): Promise<Uint8Array>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Width of the terminal behind stdout; absent where nobody watches it. */
  readonly columns?: number;
  /** Started by kubectl: a cluster is meant, and no agent of this machine. */
  readonly isKubectl?: boolean;
  /** Whether a person watches stderr. */
  readonly stderrIsTerminal: boolean;
  /** Absent: the process is the command's own. */
  readonly hosted?: HostedCommand;
}
