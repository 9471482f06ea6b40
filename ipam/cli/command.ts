/** What a command at a terminal gets from the process around it. */
export interface CommandIo {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * `pipette ipam …`: looks into the leases, without a daemon.
 * @param args what follows `ipam`
 * @returns exit status: 0 done, 1 failed, 2 wrong arguments
 */
export async function runIpamCommand(_args: readonly string[], _io: CommandIo): Promise<number> {
  throw new Error("Broken invariant: the command is not wired up yet");
}
