/** What a command at a terminal gets from the process around it. */
export interface CommandIo {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const usage = `Usage: pipette ipam <command>

  list    show the leases of this node

"pipette ipam <command> --help" tells more.
`;

/**
 * `pipette ipam …`: looks into the leases, without a daemon.
 * @param args what follows `ipam`
 * @returns exit status: 0 done, 1 failed, 2 wrong arguments
 */
export async function runIpamCommand(args: readonly string[], io: CommandIo): Promise<number> {
  const [name, ...rest] = args;
  // Imported here, so that the plugin, which shares the way in, does not carry the terminal's code.
  if (name === "list") return (await import("./list.ts")).runList(rest, io);
  if (name === "--help" || name === "-h" || name === "help") {
    io.stdout(usage);
    return 0;
  }
  io.stderr(
    `Cannot run "pipette ipam": the command is ${name === undefined ? "missing" : `"${name}"`}, wanted list\n\n${usage}`,
  );
  return 2;
}
