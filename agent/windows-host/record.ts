import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CniCode } from "../../shared/errors.ts";
import { Fields, isObject } from "../../shared/json-fields.ts";
import { writeAtomically } from "../atomic-file.ts";

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
  readonly adapter?: SavedAdapter;
  /** The HNS network that we made, or were about to. */
  readonly network?: string;
  readonly entries: readonly Entry[];
}

const fileVersion = 1;

const keyOf = (step: string, thing: Thing): string => JSON.stringify([step, thing]);

/**
 * What was changed on this node, in the order in which it was. An entry is written before its change: a run that
 * was killed in between leaves an entry for nothing, which does no harm, never a change that nobody knows of.
 */
export class HostRecord {
  readonly path: string;
  #content: Content;

  private constructor(path: string, content: Content) {
    this.path = path;
    this.#content = content;
  }

  /** @throws {CniError} code 5 or 6 where the file is there and is not a record */
  static open(dataDir: string): HostRecord {
    const path = join(dataDir, "windows-host.json");
    return new HostRecord(path, readContent(path));
  }

  get adapter(): SavedAdapter | undefined {
    return this.#content.adapter;
  }

  get network(): string | undefined {
    return this.#content.network;
  }

  get entries(): readonly Entry[] {
    return this.#content.entries;
  }

  has(step: string, thing: Thing): boolean {
    return this.entries.some((entry) => keyOf(entry.step, entry.thing) === keyOf(step, thing));
  }

  saveAdapter(adapter: SavedAdapter, network: string): void {
    this.#write({ ...this.#content, adapter, network });
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

  /** The network is gone, and the adapter has its address back. */
  forgetAdapter(): void {
    this.#write({ entries: this.entries });
  }

  #write(content: Content): void {
    if (content.adapter === undefined && content.entries.length === 0) rmSync(this.path, { force: true });
    else writeAtomically(this.path, `${JSON.stringify({ version: fileVersion, ...content }, null, 2)}\n`);
    this.#content = content;
  }
}

function readContent(path: string): Content {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (caught) {
    if ((caught as { code?: unknown }).code === "ENOENT") return { entries: [] };
    throw caught;
  }
  const fields = Fields.parse(text, `record "${path}"`, CniCode.io);
  fields.integer("version", fileVersion, fileVersion) ?? missing(fields, "version");
  const adapter = fields.object("adapter");
  const network = fields.string("network");
  return {
    ...(adapter === undefined ? {} : { adapter: readAdapter(adapter) }),
    ...(network === undefined ? {} : { network }),
    entries: (fields.objects("entries") ?? []).map(readEntry),
  };
}

function readEntry(fields: Fields): Entry {
  const before = fields.string("before");
  const thing = fields.object("thing")?.raw ?? missing(fields, "thing");
  if (!isThing(thing)) throw fields.wrong("thing", thing, "an object of texts");
  return { step: text(fields, "step"), thing, ...(before === undefined ? {} : { before }) };
}

const isThing = (value: unknown): value is Thing =>
  isObject(value) && Object.values(value).every((entry) => typeof entry === "string");

function readAdapter(fields: Fields): SavedAdapter {
  return {
    name: text(fields, "name"),
    index: fields.integer("index", 0, 0xffff_ffff) ?? missing(fields, "index"),
    mac: text(fields, "mac"),
    address: text(fields, "address"),
    dhcp: fields.boolean("dhcp") ?? missing(fields, "dhcp"),
    gateway: text(fields, "gateway"),
    dnsServers: fields.strings("dnsServers") ?? missing(fields, "dnsServers"),
    routes: (fields.objects("routes") ?? []).map((route) => ({
      destination: text(route, "destination"),
      nextHop: text(route, "nextHop"),
      metric: route.integer("metric", 0, 0xffff_ffff) ?? missing(route, "metric"),
    })),
  };
}

const text = (fields: Fields, key: string): string => fields.string(key) ?? missing(fields, key);

function missing(fields: Fields, key: string): never {
  throw fields.wrong(key, undefined, "one, or no file at all");
}
