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
}
