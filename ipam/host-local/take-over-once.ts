import type { Allocator } from "../allocator.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { describeImport } from "./import.ts";
import { lockName } from "./lease-file.ts";
import { DirectoryLock } from "./lock.ts";
import { hostLocalDirectory, isSettled, readRecord, writeRecord } from "./record.ts";

export interface TakeOver {
  readonly dataDir: string;
  readonly network: string;
  readonly config?: Pick<IpamConfig, "rangeSets"> | undefined;
  readonly log: (line: string) => void;
}

/**
 * Imports a network from host-local once: if its directory lies in the data directory, or was exported to since. Any
 * number of processes may try at the same time; the lock lets one of them do it, and the others find it done.
 * @throws {CniError} as `importHostLocal`: an address that host-local gave out could be given out twice
 */
export async function takeOverOnce(allocator: Allocator, { dataDir, network, config, log }: TakeOver): Promise<void> {
  const directory = await whereFrom(allocator, dataDir, network);
  if (directory === undefined) {
    // Only an ADD begins a network; queries and releases must not leave a mark where nothing was.
    if (config !== undefined) settleWithout(allocator, network);
    return;
  }
  using _lock = await DirectoryLock.take(directory);
  if (allocator.transaction((store): boolean => isSettled(store, network))) return;
  // Loaded only here, because a network that host-local never had needs no code that reads its files.
  const { importLocked } = await import("./import.ts");
  const report = await importLocked(allocator, { directory, network, config });
  for (const line of describeImport(report)) log(line);
}

async function whereFrom(allocator: Allocator, dataDir: string, network: string): Promise<string | undefined> {
  const record = allocator.transaction((store) => readRecord(store, network));
  if (record?.t !== "exported") return hostLocalDirectory(dataDir, network);
  // If the directory is gone or was emptied since, the store has all leases.
  return (await exists(`${record.directory}/${lockName}`)) ? record.directory : undefined;
}

function settleWithout(allocator: Allocator, network: string): void {
  allocator.transaction((store): void => {
    const record = readRecord(store, network);
    if (record?.t === "exported") writeRecord(store, network, { ...record, t: "taken" });
    else if (record === undefined) writeRecord(store, network, { t: "none" });
  });
}

const exists = (path: string): Promise<boolean> => Bun.file(path).exists();
