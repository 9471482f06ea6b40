import { CniCode, CniError } from "../../../shared/errors.ts";
import {
  type ApiClient,
  ApiError,
  type ApiObject,
  type InformerTimes,
  usualInformerTimes,
} from "../../../shared/kubernetes/mod.ts";
import type { Logger } from "../../../shared/log.ts";
import { formatEncryption } from "../node-encryption.ts";
import type { ClusterNode, Followed, ListedNode, NodeRegistry, Registration } from "../node-registry.ts";
import { RegistryHealth } from "../registry-health.ts";
import { listNodes, NodeWatch } from "./list-watch.ts";
import { encryptionAnnotation, macAnnotation, nodeOf } from "./node-resource.ts";

export interface KubernetesRegistryOptions {
  readonly api: ApiClient;
  readonly logger: Logger;
  /** Absent: the usual ones. */
  readonly times?: InformerTimes;
  /** How long a registration waits for the node's pod CIDRs. Absent: 10 s. */
  readonly patienceMs?: number;
}

const lookMs = 200;

/**
 * The Nodes of Kubernetes: the kubelet creates them, and controllers assign pod CIDRs and delete them. Pipette adds one
 * annotation, the MAC. Tenants are not kept there.
 */
export class KubernetesRegistry implements NodeRegistry {
  readonly name: string;
  readonly servers: readonly string[];
  readonly health: RegistryHealth;
  readonly #options: KubernetesRegistryOptions;

  constructor(options: KubernetesRegistryOptions) {
    this.#options = options;
    this.name = `Kubernetes at ${options.api.server}`;
    this.servers = [options.api.server];
    this.health = new RegistryHealth(this.name, options.logger);
  }

  register(self: Registration): Promise<ClusterNode> {
    const action = `register node "${self.name}"`;
    const until = performance.now() + (this.#options.patienceMs ?? 10_000);
    return this.#attempt(action, async () => {
      const { api } = this.#options;
      const path = `/api/v1/nodes/${self.name}`;
      const get = (): Promise<ApiObject> => api.get({ path, action: `get node "${self.name}"` });
      let node = nodeOf(await get());
      const annotations = node === undefined ? {} : changedAnnotations(node, self);
      if (Object.keys(annotations).length > 0) {
        const change = { metadata: { annotations } };
        node = nodeOf(await api.patch({ path, action: `patch node "${self.name}"` }, change));
      }
      while (node !== undefined && missingIn(node) !== undefined && performance.now() < until) {
        await Bun.sleep(lookMs);
        node = nodeOf(await get());
      }
      if (node === undefined) throw new Error("what the API server has under that name is no Node");
      const missing = missingIn(node);
      if (missing !== undefined) throw new Error(`its Node has no ${missing}`);
      const { state: _, ...record } = node;
      return record;
    });
  }

  /** Nothing to do: the kubelet reports that the node is alive. */
  keepAlive(): AsyncDisposable {
    return { [Symbol.asyncDispose]: () => Promise.resolve() };
  }

  async release(name: string): Promise<boolean> {
    const nodes = await this.list();
    if (!nodes.some((node) => node.name === name)) return false;
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot release node "${name}": ${this.name} are Kubernetes' own, wanted "kubectl delete node ${name}"`,
    );
  }

  list(): Promise<readonly ListedNode[]> {
    return this.#attempt("list the nodes", () => listNodes(this.#options.api));
  }

  follow(): Followed<ReadonlyMap<string, ClusterNode>> {
    const { api, logger, times = usualInformerTimes } = this.#options;
    return new NodeWatch(api, logger, times, this.health);
  }

  /** Closes the connection, and with it all watches. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#options.api[Symbol.asyncDispose]();
  }

  async #attempt<T>(action: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (cause) {
      // A missing Node is an answer; other failures may be temporary, and the node continues meanwhile.
      const { is, status } = ApiError.from(cause);
      const code = status === 404 ? CniCode.ipamFailure : CniCode.tryAgainLater;
      throw new CniError(code, `Cannot ${action} with ${this.name}: ${is}`, { cause });
    }
  }
}

/** What its annotations have to say that they do not; nothing of the MAC where it is not known. */
function changedAnnotations(node: ListedNode, self: Registration): Readonly<Record<string, string | null>> {
  const [is, wanted] = [node, self].map(({ encryption }) => encryption && formatEncryption(encryption));
  return {
    ...(self.mac === undefined || node.mac === self.mac ? {} : { [macAnnotation]: self.mac }),
    ...(is === wanted ? {} : { [encryptionAnnotation]: wanted ?? null }),
  };
}

/** The field that a new Node still lacks and that its peers need. */
function missingIn({ subnets, addresses }: ClusterNode): string | undefined {
  if (subnets.length === 0)
    return '"spec.podCIDRs" yet, wanted the controller manager to give it some (--allocate-node-cidrs)';
  return addresses.length === 0
    ? '"InternalIP" yet, wanted the kubelet or the cloud\'s controller to tell it'
    : undefined;
}
