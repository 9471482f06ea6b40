import { readdirSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { writeAtomically } from "../../../../shared/os/atomic-file.ts";
import {
  anyText,
  boolean,
  defaulted,
  type Infer,
  integer,
  list,
  object,
  opaque,
  optional,
  readRecord,
  required,
} from "../../../../shared/schema/mod.ts";
import { sameName } from "./tables.ts";

/** A recorded object that a step has made: enough to find and remove it. */
export type Thing = Readonly<Record<string, string>>;

const thing = opaque<Thing>("an object of texts", (value) =>
  Object.values(value).every((entry) => typeof entry === "string") ? undefined : '"$" has other values',
);

const fileVersion = 1;
/** More than a node has routes to its pods, or an adapter has neighbours. */
const maxEntries = 100_000;
const uint32 = integer(0, 0xffff_ffff);

/** The node's adapter as it was before the HNS network took it. */
const savedAdapterSchema = object({
  name: required(anyText),
  index: required(uint32),
  mac: required(anyText),
  address: required(anyText, "`192.168.1.5/24`"),
  dhcp: required(boolean, "the address came from a DHCP server"),
  gateway: required(anyText, "empty: none"),
  dnsServers: required(list(anyText, 0, maxEntries)),
  routes: defaulted(
    list(
      object({ destination: required(anyText), nextHop: required(anyText), metric: required(uint32) }),
      0,
      maxEntries,
    ),
    [],
    "through that gateway, but for the default route",
  ),
});

export type SavedAdapter = Infer<typeof savedAdapterSchema>;

const recordSchema = object({
  version: required(integer(fileVersion, fileVersion)),
  network: required(anyText, "name of the HNS network"),
  adapter: optional(savedAdapterSchema, "of a network that we made, or were about to"),
  entries: required(
    list(
      object({
        step: required(anyText),
        thing: required(thing),
        before: optional(anyText, "what stood in its place before", "nothing did"),
      }),
      0,
      maxEntries,
    ),
  ),
});

type Content = Omit<Infer<typeof recordSchema>, "version">;
export type Entry = Content["entries"][number];

const keyOf = (step: string, thing: Thing): string => JSON.stringify([step, thing]);

/**
 * The changes on this node for one HNS network, in order. An entry is written before its change, so a killed run may
 * leave an entry without a change, which is harmless, but never a change without an entry.
 */
export class HostRecord {
  readonly path: string;
  #content: Content;

  private constructor(path: string, content: Content) {
    this.path = path;
    this.#content = content;
  }

  /** @throws {CniError} code 5 or 6 where the file is there and is not a record of this network */
  static open(dataDir: string, network: string): HostRecord {
    const path = join(hostRecords(dataDir), fileNameOf(network));
    const content = readContent(path) ?? { network, entries: [] };
    if (sameName(content.network, network)) return new HostRecord(path, content);
    throw new CniError(CniCode.io, `Cannot read "${path}": it is of "${content.network}", wanted "${network}"`);
  }

  /** Those of all networks that something was done for. @throws {CniError} as `open` */
  static all(dataDir: string): readonly HostRecord[] {
    const directory = hostRecords(dataDir);
    return filesOf(directory).flatMap((file) => {
      const path = join(directory, file);
      const content = readContent(path);
      return content === undefined ? [] : [new HostRecord(path, content)];
    });
  }

  get network(): string {
    return this.#content.network;
  }

  /** The network is ours, and took this adapter's address. */
  get adapter(): SavedAdapter | undefined {
    return this.#content.adapter;
  }

  get entries(): readonly Entry[] {
    return this.#content.entries;
  }

  /** Before the network is made. */
  saveAdapter(adapter: SavedAdapter): void {
    this.#write({ ...this.#content, adapter });
  }

  /** Writes all at once. An existing entry gets the new `before`, which the next change replaces. */
  add(entries: readonly Entry[]): void {
    const again = new Map(entries.map((entry) => [keyOf(entry.step, entry.thing), entry]));
    const known = this.entries.map((entry) => {
      const key = keyOf(entry.step, entry.thing);
      const renewed = again.get(key);
      again.delete(key);
      return renewed ?? entry;
    });
    this.#write({ ...this.#content, entries: [...known, ...again.values()] });
  }

  remove(entries: readonly Entry[]): void {
    const gone = new Set(entries.map((entry) => keyOf(entry.step, entry.thing)));
    const left = this.entries.filter((entry) => !gone.has(keyOf(entry.step, entry.thing)));
    this.#write({ ...this.#content, entries: left });
  }

  /**
   * The network is gone, and the adapter has its address back.
   * @param step whose entries go with it
   */
  forgetAdapter(step: string): void {
    const entries = this.entries.filter((entry) => entry.step !== step);
    this.#write({ network: this.network, entries });
  }

  #write(content: Content): void {
    if (content.adapter === undefined && content.entries.length === 0) removeFile(this.path);
    else writeAtomically(this.path, `${JSON.stringify({ version: fileVersion, ...content }, null, 2)}\n`);
    this.#content = content;
  }
}

/** What the card was before the HNS network of this name took it; `undefined` where the network is none of ours. */
export const savedAdapter = (dataDir: string, network: string): SavedAdapter | undefined =>
  HostRecord.open(dataDir, network).adapter;

/** Where the records lie: there only while something of ours is on the node. */
export const hostRecords = (dataDir: string): string => join(dataDir, "windows-host");
const suffix = ".json";

/** Removes the file, and the directory once it is empty. */
function removeFile(path: string): void {
  rmSync(path, { force: true });
  try {
    rmdirSync(dirname(path));
  } catch {
    // The directory holds another network's record.
  }
}

/** Windows ignores case in names of networks, and these may hold characters that file names cannot. */
const fileNameOf = (network: string): string =>
  `${encodeURIComponent(network.toLowerCase()).replace(/[*'()!~.]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)}${suffix}`;

function filesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory).filter((file) => file.endsWith(suffix));
  } catch (caught) {
    if (isAbsent(caught)) return [];
    throw caught;
  }
}

function readContent(path: string): Content | undefined {
  const read = readRecord(path, recordSchema);
  if (read.t === "absent") return undefined;
  if (read.t === "wrong") throw new CniError(read.code, `Cannot read the record "${path}": ${read.is}`);
  const { version: _, ...content } = read.value;
  return content;
}

const isAbsent = (caught: unknown): boolean => (caught as { code?: unknown }).code === "ENOENT";
