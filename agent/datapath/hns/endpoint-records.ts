import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Owner } from "../../../shared/cni/types.ts";
import { writeUnsynced } from "../../../shared/os/atomic-file.ts";
import {
  anyText,
  boolean,
  defaulted,
  type Infer,
  integer,
  object,
  opaque,
  optional,
  readRecord,
  required,
} from "../../../shared/schema/mod.ts";
import type { HcnDocument } from "../../protocols/hcn/mod.ts";
import { digest, ownerParts } from "../owner-names.ts";

const recordSchema = object({
  owner: required(object({ network: required(anyText), sandboxId: required(anyText), ifname: required(anyText) })),
  ownLease: defaulted(boolean, false, "the address is a lease of our own allocator"),
  unsure: optional(boolean, "a creation was given up: HNS may carry it out at any time"),
  goneSinceMs: optional(
    integer(0, Number.MAX_SAFE_INTEGER),
    "since when the owner of an unsure one is gone, in milliseconds since 1970",
  ),
  made: optional(
    object({
      namespace: required(anyText, "of its sandbox"),
      document: required(
        opaque<HcnDocument>("a document of HNS", () => undefined),
        "what HNS was given, with the hardware address that it chose",
      ),
    }),
    "what it takes to make it again where HNS has lost it: once it stands in its sandbox's namespace",
  ),
});

/** The owner of an endpoint, which HNS cannot store except as a short name. */
export type EndpointRecord = Infer<typeof recordSchema>;

export type MadeEndpoint = NonNullable<EndpointRecord["made"]>;

const suffix = ".json";

/** Where they lie. */
export const endpointRecords = (dataDir: string): string => join(dataDir, "hns");

/**
 * The records of all endpoints of ours, each a file under its identifier: written before the endpoint is created, and
 * removed when it can no longer appear. Files are not flushed, because a power cut ends the endpoints too.
 */
export class EndpointRecords {
  readonly #directory: string;
  readonly #records: Map<string, EndpointRecord>;

  private constructor(directory: string, records: Map<string, EndpointRecord>) {
    this.#directory = directory;
    this.#records = records;
  }

  /** @throws where the directory can neither be read nor made */
  static open(directory: string): EndpointRecords {
    mkdirSync(directory, { recursive: true });
    const records = new Map<string, EndpointRecord>();
    for (const file of readdirSync(directory)) {
      if (!file.endsWith(suffix)) continue;
      // A crash may have left half a file, or somebody else one of theirs.
      const read = readRecord(join(directory, file), recordSchema, { wrongOptional: "ignored" });
      if (read.t === "ok") records.set(file.slice(0, -suffix.length), read.value);
    }
    return new EndpointRecords(directory, records);
  }

  get(id: string): EndpointRecord | undefined {
    return this.#records.get(id);
  }

  all(): readonly (readonly [id: string, record: EndpointRecord])[] {
    return [...this.#records];
  }

  put(id: string, record: EndpointRecord): void {
    const text = JSON.stringify(record);
    if (JSON.stringify(this.#records.get(id)) === text) return;
    writeUnsynced(this.#fileOf(id), text);
    this.#records.set(id, record);
  }

  remove(id: string): void {
    if (!this.#records.delete(id)) return;
    rmSync(this.#fileOf(id), { force: true });
  }

  #fileOf(id: string): string {
    return join(this.#directory, `${id}${suffix}`);
  }
}

/**
 * The identifier of an owner's endpoint, derived from the owner, so that an endpoint whose creation timed out is found
 * again, and a DEL needs no record (RFC 9562, version 8).
 */
export function endpointId(owner: Owner): string {
  const bytes = Uint8Array.from(digest("endpoint", ...ownerParts(owner)).subarray(0, 16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Buffer.from(bytes).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
