import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Owner } from "../../../shared/cni/types.ts";
import { parseJson } from "../../../shared/schema/json.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import type { HcnDocument } from "../../protocols/hcn/mod.ts";
import { digest, ownerParts } from "../owner-names.ts";

/** What it takes to make an endpoint again that HNS has lost. */
export interface MadeEndpoint {
  /** Of its sandbox. */
  readonly namespace: string;
  /** What HNS was given, with the hardware address that it chose. */
  readonly document: HcnDocument;
}

/**
 * Whose an endpoint is. HNS keeps nothing about it that could say so but a short name.
 */
export interface EndpointRecord {
  readonly owner: Owner;
  /** `true` where the address is a lease of our own allocator. */
  readonly ownLease: boolean;
  /** A creation was given up: HNS may carry it out at any time. */
  readonly unsure?: true;
  /** Since when the owner of an unsure one is gone, in milliseconds since 1970. */
  readonly goneSinceMs?: number;
  /** Once it stands in its sandbox's namespace. */
  readonly made?: MadeEndpoint;
}

const suffix = ".json";

/** Where they lie. */
export const endpointRecords = (dataDir: string): string => join(dataDir, "hns");

/**
 * The records of all endpoints of ours, each a file under its identifier: written before the endpoint is made, and
 * removed when it cannot come to be any more. Nothing is synced: a power cut takes the endpoints, too.
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
      const record = file.endsWith(suffix) ? parse(readFileSync(join(directory, file), "utf8")) : undefined;
      if (record !== undefined) records.set(file.slice(0, -suffix.length), record);
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
    const file = this.#fileOf(id);
    const temporary = `${file}.${process.pid}.tmp`;
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, file);
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

/** `undefined` where a crash left half a file, or somebody else one of theirs. */
function parse(text: string): EndpointRecord | undefined {
  try {
    const value: unknown = parseJson(text);
    if (!isObject(value) || !isObject(value["owner"])) return undefined;
    const { network, sandboxId, ifname } = value["owner"];
    if (typeof network !== "string" || typeof sandboxId !== "string" || typeof ifname !== "string") return undefined;
    const since = value["goneSinceMs"];
    return {
      owner: { network, sandboxId, ifname },
      ownLease: value["ownLease"] === true,
      ...(value["unsure"] === true ? { unsure: true } : {}),
      ...(typeof since === "number" ? { goneSinceMs: since } : {}),
      ...madeIn(value["made"]),
    };
  } catch {
    return undefined;
  }
}

function madeIn(value: unknown): Pick<EndpointRecord, "made"> {
  if (!isObject(value) || typeof value["namespace"] !== "string" || !isObject(value["document"])) return {};
  return { made: { namespace: value["namespace"], document: value["document"] } };
}

/**
 * The identifier of an owner's endpoint: always the same, so that an endpoint whose creation was given up is found
 * again, and a DEL needs no record. RFC 9562, version 8: a GUID of one's own making.
 */
export function endpointId(owner: Owner): string {
  const bytes = Uint8Array.from(digest("endpoint", ...ownerParts(owner)).subarray(0, 16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Buffer.from(bytes).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
