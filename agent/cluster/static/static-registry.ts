import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { type Live, LiveValue } from "../../../shared/async/live-value.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { FollowedFile } from "../../config/followed-file.ts";
import { openToOthers } from "../../config/own-files.ts";
import { formatEncryption } from "../node-encryption.ts";
import {
  type ClusterNode,
  type Followed,
  type ListedNode,
  type NodeRegistry,
  privilegedProject,
  type Registration,
  type TenantRegistry,
} from "../node-registry.ts";
import { RegistryHealth } from "../registry-health.ts";
import { maxNodeFileBytes, type NodeFile, readNodeFile } from "./node-file.ts";

export interface StaticRegistryOptions {
  readonly file: string;
  readonly logger: Logger;
  /** Interval of checking the file; absent: `FollowedFile`'s default. */
  readonly intervalMs?: number;
}

const reading = "take what stands there";

/**
 * Nodes, subnets and VNIDs in a file that a person or a node manager writes. Pipette never writes it, so a node has to
 * find itself in it, and nobody knows which nodes are alive.
 */
export class StaticRegistry implements NodeRegistry {
  readonly name: string;
  readonly health: RegistryHealth;
  readonly #options: StaticRegistryOptions;

  constructor(options: StaticRegistryOptions) {
    this.#options = options;
    this.name = `the file of nodes "${options.file}"`;
    this.health = new RegistryHealth(this.name, options.logger);
  }

  async register(self: Registration): Promise<ClusterNode> {
    const own = (await this.#read("join")).nodes.get(self.name);
    const file = `"${this.#options.file}"`;
    if (own === undefined) {
      const addresses = self.addresses.map(formatIp).join(", ");
      throw new CniError(
        CniCode.ipamFailure,
        `Cannot join: ${file} has no node "${self.name}", wanted an entry such as { name: ${self.name}, addresses: [${addresses}], subnets: [10.244.1.0/24] }`,
      );
    }
    if (own.uid !== "" && own.uid !== self.uid)
      throw new CniError(
        CniCode.invalidConfig,
        `Cannot join: node "${self.name}" of ${file} has the uid "${own.uid}", wanted this machine's "${self.uid}", or none`,
      );
    const [is, wanted] = [own, self].map(({ encryption }) => (encryption ? formatEncryption(encryption) : undefined));
    if (is !== wanted)
      throw new CniError(
        CniCode.invalidConfig,
        `Cannot join: node "${self.name}" of ${file} has ${is === undefined ? 'no "encryption"' : `the encryption "${is}"`}, wanted ${wanted === undefined ? "none, as this node's configuration has it" : `"encryption: ${wanted}" in its entry`}`,
      );
    return own;
  }

  keepAlive(): AsyncDisposable {
    return { [Symbol.asyncDispose]: () => Promise.resolve() };
  }

  async release(name: string): Promise<boolean> {
    if (!(await this.#read("release the node")).nodes.has(name)) return false;
    throw this.#readOnly(`release node "${name}"`, "its entry to be taken out there");
  }

  async list(): Promise<readonly ListedNode[]> {
    const { nodes } = await this.#read("list the nodes");
    return [...nodes.values()].map((node) => ({ ...node, state: "unknown" }));
  }

  follow(): Followed<ReadonlyMap<string, ClusterNode>> {
    return new FollowedPart(this.#follow(), ({ nodes }) => nodes);
  }

  readonly tenants: TenantRegistry = {
    vnidOf: async (project) => {
      const vnid = (await this.#read("find the project's VNID")).tenants?.get(project);
      if (vnid !== undefined) return vnid;
      if (project === privilegedProject) return 0;
      throw this.#readOnly(`find the VNID of "${project}"`, 'it under "tenants" there');
    },
    assign: async (project) => {
      throw this.#readOnly(`give "${project}" another VNID`, 'it changed under "tenants" there');
    },
    follow: () => new FollowedPart(this.#follow(), ({ tenants }) => tenants ?? new Map()),
  };

  async [Symbol.asyncDispose](): Promise<void> {
    // Nothing stays open between two calls; followers are ended by their owners.
  }

  #follow(): FollowedFile<NodeFile> {
    const { file, logger, intervalMs } = this.#options;
    return new FollowedFile({
      path: file,
      what: "nodes",
      maxBytes: maxNodeFileBytes,
      read: (text) => readNodeFile(text, file),
      logger,
      told: (fault) => (fault === undefined ? this.health.works(reading) : this.health.failed(reading, fault)),
      ...(intervalMs === undefined ? {} : { intervalMs }),
    });
  }

  #readOnly(action: string, wanted: string): CniError {
    const is = `"${this.#options.file}" is written by people, not by Pipette`;
    return new CniError(CniCode.invalidConfig, `Cannot ${action}: ${is}, wanted ${wanted}`);
  }

  /** @throws {CniError} 11 where the file is missing or invalid, which it may be while it is being written */
  async #read(action: string): Promise<NodeFile> {
    const { file } = this.#options;
    const read = readNodeFile(await textOf(file, action), file);
    if (read.t === "ok") return read.value;
    const details = read.problems.slice(1, 20).join("\n");
    throw new CniError(
      CniCode.tryAgainLater,
      `Cannot ${action}: "${file}" has ${read.problems.length === 1 ? "a fault" : `${read.problems.length} faults, the first`}: ${read.problems[0]}`,
      { details },
    );
  }
}

async function textOf(path: string, action: string): Promise<string> {
  const is = openToOthers(path);
  if (is !== undefined) throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${is}`);
  try {
    // A named pipe without a writer would block the agent's start for ever.
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const found = await file.stat();
    if (!found.isFile()) throw new Error("it is no file");
    if (found.size > maxNodeFileBytes) throw new Error(`it has ${found.size} bytes, more than ${maxNodeFileBytes}`);
    return await file.readFile("utf8");
  } catch (cause) {
    const is = reasonOf(cause);
    throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: "${path}" cannot be read: ${is}, wanted a file`, {
      cause,
    });
  }
}

/** A part of another followed value. Disposing of it ends the source. */
export class FollowedPart<T, U> implements Followed<U> {
  readonly #source: Live<T> & AsyncDisposable;
  readonly #value = new LiveValue<U>();
  readonly #subscription: Disposable;

  constructor(source: Live<T> & AsyncDisposable, part: (whole: T) => U) {
    this.#source = source;
    this.#subscription = source.subscribe((whole) => this.#value.set(part(whole)));
  }

  get current(): U | undefined {
    return this.#value.current;
  }

  subscribe(listener: (value: U) => void): Disposable {
    return this.#value.subscribe(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscription[Symbol.dispose]();
    await this.#source[Symbol.asyncDispose]();
  }
}
