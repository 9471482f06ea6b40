import type { Allocator } from "../allocator.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import { lockName } from "./lease-file.ts";
import { DirectoryLock } from "./lock.ts";
import { hostLocalDirectory } from "./places.ts";
import { isSettled, readRecord, writeRecord } from "./record.ts";
import { describeImport } from "./report.ts";

export interface TakeOver {
  readonly dataDir: string;
  readonly network: string;
  readonly config?: Pick<IpamConfig, "rangeSets"> | undefined;
  readonly log: (line: string) => void;
}

/**
 * Takes a network over from host-local, once: where its directory lies in the data directory, or was exported to since.
 * Any number of processes may do this at the same time; the lock lets one of them, and the others find it done.
 * @throws {CniError} as `importHostLocal`: an address that host-local gave out could be given out twice
 */
export async function takeOverOnce(allocator: Allocator, { dataDir, network, config, log }: TakeOver): Promise<void> {
  const directory = await whereFrom(allocator, dataDir, network);
  if (directory === undefined) {
    // Only an ADD begins a network; what looks or releases leaves nothing where nothing was.
    if (config !== undefined) settleWithout(allocator, network);
    return;
  }
  using _lock = await DirectoryLock.take(directory);
  if (allocator.transaction((store): boolean => isSettled(store, network))) return;
  // With what it takes to read files, for which a network that never was host-local's need not pay.
  const { importLocked } = await import("./import.ts");
  const report = await importLocked(allocator, { directory, network, config });
  for (const line of describeImport(report)) log(line);
}

async function whereFrom(allocator: Allocator, dataDir: string, network: string): Promise<string | undefined> {
  const record = allocator.transaction((store) => readRecord(store, network));
  if (record?.t !== "exported") return hostLocalDirectory(dataDir, network);
  // Emptied since, or gone: then what the store has is all there is.
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
