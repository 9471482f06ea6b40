import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { FollowedFile } from "../../config/followed-file.ts";
import { openToOthers } from "../../config/own-files.ts";
import { FollowedPart } from "../followed-part.ts";
import type {
  ClusterNode,
  Followed,
  ListedNode,
  NodeRegistry,
  Registration,
  TenantRegistry,
} from "../node-registry.ts";
import { privilegedProject } from "../project-name.ts";
import { RegistryHealth } from "../registry-health.ts";
import { maxNodeFileBytes, type NodeFile, readNodeFile } from "./node-file.ts";

export interface StaticRegistryOptions {
  readonly file: string;
  readonly logger: Logger;
  /** Between two looks at the file; absent: `FollowedFile`'s own. */
  readonly intervalMs?: number;
}

const reading = "take what stands there";

/**
 * Nodes, subnets and VNIDs that stand in a file which somebody else writes: a person, or what manages the node. Nothing
 * is written there, so a node only ever finds itself in it, and nobody knows who is alive.
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
    // Nothing stays open between two calls, and whoever follows ends that.
  }

  #follow(): FollowedFile<NodeFile> {
    const { file, logger, intervalMs } = this.#options;
    return new FollowedFile({
      path: file,
      what: "nodes",
      mostBytes: maxNodeFileBytes,
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

  /** @throws {CniError} 11 where the file is not there, or wrong, as one is that is just being written */
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
    // A pipe without a writer would hold the agent's start for ever.
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
