import { uptime } from "node:os";
import { resolve } from "node:path";
import type { Owner } from "../../shared/cni/types.ts";
import { bitsOf, formatIp, type Ip } from "../../shared/net/ip.ts";
import { printable } from "../../shared/printable.ts";
import { generationMark, inheritedCursorMark } from "../allocate/marks.ts";
import { hasSubnet, subnetOf } from "../allocate/owner-leases.ts";
import type { Allocator } from "../allocator.ts";
import { readBootId } from "../allocator-env.ts";
import type { IpamConfig } from "../config/ipam-config.ts";
import type { Lease } from "../lease.ts";
import { numberOf } from "../store/address-key.ts";
import type { Store } from "../store/store.ts";
import { type DirectoryContent, type FoundLease, readDirectory, type Unreadable } from "./directory.ts";
import { addressName, type Holder } from "./lease-file.ts";
import { DirectoryLock } from "./lock.ts";
import { readRecord, writeRecord } from "./record.ts";

export interface Progress {
  /** `reading` the files, then `keeping` their leases in the store. */
  readonly step: "reading" | "keeping";
  readonly done: number;
  readonly total: number;
}

export interface ImportOptions {
  /** host-local's directory of this network: `<its dataDir>/<network>`. */
  readonly directory: string;
  readonly network: string;
  /** Gives the leases their subnets and gateways at once; without it they get them from their container's next ADD. */
  readonly config?: Pick<IpamConfig, "rangeSets"> | undefined;
  /**
   * Also imports leases that were imported before and released since: for a directory that host-local has used again.
   */
  readonly again?: boolean;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

/** An address that another container holds in the store; the store's lease stays. */
export interface Clash {
  readonly ip: Ip;
  readonly theirs: Holder;
  readonly ours: Lease;
}

export interface ImportReport {
  readonly directory: string;
  readonly network: string;
  /** Leases that were imported. */
  readonly taken: number;
  /** Leases that the allocator held already. */
  readonly already: number;
  /** Leases left out because they were imported before and have been released since. */
  readonly released: number;
  /** Leases of the allocator that host-local has released since they were exported to it. */
  readonly dropped: number;
  readonly clashes: readonly Clash[];
  readonly unreadable: readonly Unreadable[];
}

/** No boot has this name, so a lease with it is stale in every boot. */
const earlierBoot = "earlier";
const leasesPerReport = 1000;

/**
 * Imports the leases of a host-local directory, under host-local's own lock and in one transaction. Repeating it
 * changes nothing. The directory stays as it is.
 * @throws {CniError} code 5 where the directory or its lock cannot be used, 11 where others keep the lock, 101 as
 * `Allocator.open`
 */
export async function importHostLocal(allocator: Allocator, options: ImportOptions): Promise<ImportReport> {
  using _lock = await DirectoryLock.take(options.directory);
  return await importLocked(allocator, options);
}

/** The same for a caller that holds the directory's lock. */
export async function importLocked(allocator: Allocator, given: ImportOptions): Promise<ImportReport> {
  // One spelling of the path, by which an export recognises the directory.
  const options = { ...given, directory: resolve(given.directory) };
  const { directory, network, onProgress } = options;
  const content = await readDirectory(directory, (done, total) => onProgress?.({ step: "reading", done, total }));
  const bootId = readBootId();
  return allocator.transaction((store): ImportReport => {
    const kept = new Import(store, options, bootId).keep(content);
    return { directory, network, ...kept, unreadable: content.unreadable };
  });
}

class Import {
  readonly #store: Store;
  readonly #options: ImportOptions;
  readonly #bootId: string;
  readonly #bootStartMs = startOfThisBootMs();
  #generation: number;

  constructor(store: Store, options: ImportOptions, bootId: string) {
    this.#store = store;
    this.#options = options;
    this.#bootId = bootId;
    this.#generation = Number(store.mark(generationMark) ?? "0");
  }

  keep(content: DirectoryContent): Omit<ImportReport, "directory" | "network" | "unreadable"> {
    const { directory, network, again = false, onProgress } = this.#options;
    const record = readRecord(this.#store, network);
    // After an export to it the directory is authoritative, because host-local may have used it since.
    const comesBack = record?.t === "exported" && record.directory === directory;
    const takesNew = again || record?.t !== "taken";
    const held = new Map(
      this.#store.select({ by: "network", network }).map((lease) => [numberOf(lease.address.ip), lease]),
    );
    const found = foundIn(content);
    const counts = { taken: 0, already: 0, released: 0, dropped: 0 };
    const clashes: Clash[] = [];
    for (const [i, lease] of found.entries()) {
      if (i % leasesPerReport === 0) onProgress?.({ step: "keeping", done: i, total: found.length });
      const ours = held.get(numberOf(lease.ip));
      held.delete(numberOf(lease.ip));
      if (ours !== undefined && ours.state !== "cooling" && isHeldBy(ours, lease.holder)) {
        counts.already++;
        this.#giveSubnet(ours);
      } else if (!takesNew && (ours === undefined || ours.state === "cooling")) counts.released++;
      else if (ours === undefined || ours.state === "cooling" || comesBack) {
        counts.taken++;
        this.#take(lease);
      } else clashes.push({ ip: lease.ip, theirs: lease.holder, ours });
    }
    for (const ours of comesBack ? held.values() : []) {
      if (ours.state !== "cooling") counts.dropped++;
      this.#store.remove(ours);
    }
    for (const [rangeSet, ip] of content.cursors)
      this.#store.setMark(inheritedCursorMark(network, rangeSet), formatIp(ip));
    this.#store.setMark(generationMark, String(this.#generation));
    writeRecord(this.#store, network, { t: "taken", generation: this.#generation, directory });
    onProgress?.({ step: "keeping", done: found.length, total: found.length });
    return { ...counts, clashes };
  }

  #take({ ip, holder, sinceMs }: FoundLease): void {
    const owner: Owner = { network: this.#options.network, sandboxId: holder.containerId, ifname: holder.ifname };
    this.#store.put({
      owner,
      rangeSet: 0,
      address: { ip, prefix: bitsOf(ip.family) },
      ...this.#subnetOf(ip),
      state: "allocated",
      bootId: sinceMs < this.#bootStartMs ? earlierBoot : this.#bootId,
      generation: ++this.#generation,
      allocatedAtMs: sinceMs,
    });
  }

  /** Fills in what an earlier import without ranges could not know. */
  #giveSubnet(ours: Lease): void {
    const subnet = hasSubnet(ours) ? undefined : this.#subnetOf(ours.address.ip);
    if (subnet !== undefined) this.#store.put({ ...ours, ...subnet });
  }

  #subnetOf(ip: Ip): ReturnType<typeof subnetOf> {
    return subnetOf(this.#options.config?.rangeSets ?? [], ip);
  }
}

/** When the system started, by its present clock; milliseconds since 1970. */
const startOfThisBootMs = (): number => Date.now() - uptime() * 1000;

const isHeldBy = ({ owner }: Lease, holder: Holder): boolean =>
  owner.sandboxId === holder.containerId && owner.ifname === holder.ifname;

/** Every address that is in use, in order, which is the cheapest for the store. */
function foundIn({ leases, ownerless }: DirectoryContent): readonly FoundLease[] {
  const nobodys = ownerless.map((entry) => ({ ...entry, holder: nobodyOf(entry.ip) }));
  return [...leases, ...nobodys].sort((a, b) => (numberOf(a.ip) < numberOf(b.ip) ? -1 : 1));
}

/** A holder that no DEL names: the address stays in use, as under host-local, until a GC or a person frees it. */
const nobodyOf = (ip: Ip): Holder => ({ containerId: `unreadable-${addressName(ip, true)}`, ifname: "" });

/** Lines of a long list that the log gets; the command shows all. */
const maxLines = 20;

/**
 * What an import did, in sentences: first a summary, then each entry that was left out.
 * @param limit of the entries of each kind
 */
export function describeImport(report: ImportReport, limit = maxLines): readonly string[] {
  const { directory, network, taken, already, released, dropped, clashes, unreadable } = report;
  const parts = [
    `${taken} taken over`,
    ...(already > 0 ? [`${already} known already`] : []),
    ...(released > 0 ? [`${released} left out, which were released since they were taken over`] : []),
    ...(dropped > 0 ? [`${dropped} given up, which host-local has released`] : []),
    ...(clashes.length > 0 ? [`${clashes.length} left to their other holder`] : []),
    ...(unreadable.length > 0 ? [`${unreadable.length} unreadable`] : []),
  ];
  const clashLines = clashes.map(({ ip, theirs, ours }) => {
    const [name, holder] = [theirs.containerId, ours.owner.sandboxId];
    return `"${formatIp(ip)}" of "${name}" (${theirs.ifname || "any interface"}) was not taken over: it is held by "${holder}" (${ours.owner.ifname}), ${ours.state}`;
  });
  const unreadableLines = unreadable.map(({ file, reason }) => `"${directory}/${file}" was not understood: ${reason}`);
  const lines = [
    `Leases of host-local in "${directory}" for network "${network}": ${parts.join(", ")}`,
    ...shortened(clashLines, limit),
    ...shortened(unreadableLines, limit),
  ];
  // File names may hold control characters.
  return lines.map(printable);
}

const shortened = (lines: readonly string[], limit: number): readonly string[] =>
  lines.length <= limit ? lines : [...lines.slice(0, limit), `… and ${lines.length - limit} more`];
