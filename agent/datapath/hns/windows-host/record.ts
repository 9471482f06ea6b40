import { readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { Fields, isObject } from "../../../../shared/schema/json-fields.ts";
import { writeAtomically } from "../../../platform/atomic-file.ts";
import { sameName } from "./tables.ts";

/** What a step wants there, as it stands on record: enough to find it again and to take it away. */
export type Thing = Readonly<Record<string, string>>;

export interface Entry {
  readonly step: string;
  readonly thing: Thing;
  /** What stood in its place before; absent where nothing did. */
  readonly before?: string;
}

/** The node's adapter as it was before the HNS network took it. */
export interface SavedAdapter {
  readonly name: string;
  readonly index: number;
  readonly mac: string;
  /** `192.168.1.5/24` */
  readonly address: string;
  /** The address came from a DHCP server. */
  readonly dhcp: boolean;
  /** Empty: none. */
  readonly gateway: string;
  readonly dnsServers: readonly string[];
  /** Through that gateway, but for the default route. */
  readonly routes: readonly { readonly destination: string; readonly nextHop: string; readonly metric: number }[];
}

interface Content {
  /** Name of the HNS network. */
  readonly network: string;
  /** Of a network that we made, or were about to. */
  readonly adapter?: SavedAdapter;
  readonly entries: readonly Entry[];
}

const fileVersion = 1;

const keyOf = (step: string, thing: Thing): string => JSON.stringify([step, thing]);

/**
 * What was changed on this node for one HNS network, in the order in which it was. An entry is written before its change: a run that
 * was killed in between leaves an entry for nothing, which does no harm, never a change that nobody knows of.
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

  /** In one write. What is on record already gets the new `before`: that is what the next change replaces. */
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

/** With the directory, once it is empty. */
function removeFile(path: string): void {
  rmSync(path, { force: true });
  try {
    rmdirSync(dirname(path));
  } catch {
    // Another network's record is in it.
  }
}

/** Networks are told apart by Windows without regard to case, and a name may hold what a file's may not. */
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
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (caught) {
    if (isAbsent(caught)) return undefined;
    throw caught;
  }
  const fields = Fields.parse(text, `record "${path}"`, CniCode.io);
  fields.integer("version", fileVersion, fileVersion) ?? missing(fields, "version");
  const adapter = fields.object("adapter");
  return {
    network: stringOf(fields, "network"),
    ...(adapter === undefined ? {} : { adapter: readAdapter(adapter) }),
    entries: (fields.objects("entries") ?? missing(fields, "entries")).map(readEntry),
  };
}

const isAbsent = (caught: unknown): boolean => (caught as { code?: unknown }).code === "ENOENT";

function readEntry(fields: Fields): Entry {
  const before = fields.string("before");
  const thing = fields.object("thing")?.raw ?? missing(fields, "thing");
  if (!isThing(thing)) throw fields.wrong("thing", thing, "an object of texts");
  return { step: stringOf(fields, "step"), thing, ...(before === undefined ? {} : { before }) };
}

const isThing = (value: unknown): value is Thing =>
  isObject(value) && Object.values(value).every((entry) => typeof entry === "string");

function readAdapter(fields: Fields): SavedAdapter {
  return {
    name: stringOf(fields, "name"),
    index: fields.integer("index", 0, 0xffff_ffff) ?? missing(fields, "index"),
    mac: stringOf(fields, "mac"),
    address: stringOf(fields, "address"),
    dhcp: fields.boolean("dhcp") ?? missing(fields, "dhcp"),
    gateway: stringOf(fields, "gateway"),
    dnsServers: fields.strings("dnsServers") ?? missing(fields, "dnsServers"),
    routes: (fields.objects("routes") ?? []).map((route) => ({
      destination: stringOf(route, "destination"),
      nextHop: stringOf(route, "nextHop"),
      metric: route.integer("metric", 0, 0xffff_ffff) ?? missing(route, "metric"),
    })),
  };
}

const stringOf = (fields: Fields, key: string): string => fields.string(key) ?? missing(fields, key);

function missing(fields: Fields, key: string): never {
  throw fields.wrong(key, undefined, "one, or no file at all");
}
