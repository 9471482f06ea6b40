import { printable } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { Allocator } from "../allocator.ts";
import { databaseIn } from "../data-directory.ts";
import { StoreSnapshot } from "../store/store-snapshot.ts";

/** `undefined`, and said so on stderr, where nothing was ever leased. */
export async function openSnapshot(
  dataDir: string,
  action: string,
  io: TerminalIo,
): Promise<StoreSnapshot | undefined> {
  const snapshot = await StoreSnapshot.open(databaseIn(dataDir));
  if (snapshot === undefined) sayMissing(dataDir, action, io);
  return snapshot;
}

/** The same for changing what is there. */
export async function openAllocator(dataDir: string, action: string, io: TerminalIo): Promise<Allocator | undefined> {
  const allocator = await Allocator.openExisting(dataDir);
  if (allocator === undefined) sayMissing(dataDir, action, io);
  return allocator;
}

/** For commands that a configuration tells enough. */
export const sayNothingGiven = (dataDir: string, io: TerminalIo): void =>
  io.stderr(`${printable(`"${dataDir}" holds no leases.db: nothing was given out there yet`)}\n`);

export function sayMissing(dataDir: string, action: string, io: TerminalIo): void {
  io.stderr(
    `Cannot ${action}: "${printable(dataDir)}" holds no leases.db, wanted the data directory of a node that gave out addresses\n`,
  );
}
