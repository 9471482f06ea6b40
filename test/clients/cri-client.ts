import { join } from "node:path";
import { type Client, credentials, loadPackageDefinition, type ServiceClientConstructor } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { busyboxImage } from "./images.ts";

const callWithinMs = 120_000;

export interface PodWish {
  /** Whether it lives in the node's own network; then the runtime asks no plugin. */
  readonly hostNetwork?: boolean;
  /** Where what its containers say is written. */
  readonly logDirectory?: string;
  readonly portMappings?: readonly { readonly containerPort: number; readonly hostPort: number }[];
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface PodStatus {
  readonly state: "SANDBOX_READY" | "SANDBOX_NOTREADY";
  /** The address that the runtime tells Kubernetes first, then the others; empty after Stop. */
  readonly addresses: readonly string[];
  /** Path of its network namespace; empty where it has none any more. */
  readonly netns: string;
  /** Of its first process, as the node counts; 0 where there is none. */
  readonly pid: number;
}

interface Answers {
  Status: { status: { conditions: { type: string; status: boolean; message: string }[] } };
  RunPodSandbox: { pod_sandbox_id: string };
  StopPodSandbox: object;
  RemovePodSandbox: object;
  PodSandboxStatus: {
    status: { state: PodStatus["state"]; network: { ip: string; additional_ips: { ip: string }[] } | null };
    info: Record<string, string>;
  };
  ListPodSandbox: { items: { id: string; state: PodStatus["state"] }[] };
  CreateContainer: { container_id: string };
  StartContainer: object;
  StopContainer: object;
  RemoveContainer: object;
  ContainerStatus: { status: { state: string; exit_code: number }; info: Record<string, string> };
  ExecSync: { stdout: Uint8Array; stderr: Uint8Array; exit_code: number };
}

/** The kubelet's side of the Container Runtime Interface, as far as pods and their networks go. */
export class CriClient implements Disposable {
  readonly #client: Client;
  readonly #cgroup: string;
  readonly #configs = new Map<string, object>();
  #made = 0;

  /** @param cgroup the parent of the pods' control groups */
  constructor(socket: string, cgroup: string) {
    this.#cgroup = cgroup;
    const proto = loadSync(join(import.meta.dirname, "cri.proto"), {
      keepCase: true,
      longs: Number,
      enums: String,
      defaults: true,
    });
    const root = loadPackageDefinition(proto) as unknown as {
      runtime: { v1: { RuntimeService: ServiceClientConstructor } };
    };
    this.#client = new root.runtime.v1.RuntimeService(`unix://${socket}`, credentials.createInsecure(), {
      "grpc.default_authority": "localhost",
    });
  }

  /** Why pods cannot have a network yet; `undefined` once they can. */
  async networkProblem(): Promise<string | undefined> {
    const { status } = await this.#call("Status", {});
    const condition = status.conditions.find(({ type }) => type === "NetworkReady");
    return condition?.status ? undefined : (condition?.message ?? "no such condition");
  }

  /** Answers the sandbox's id. */
  async runPod(name: string, wish: PodWish = {}): Promise<string> {
    // The runtime refuses a name that it knows; the uid tells two pods of one name apart, as in Kubernetes.
    const config = {
      metadata: { name, uid: `uid-${++this.#made}`, namespace: "default", attempt: 0 },
      // One of its own would be asked of the node.
      hostname: wish.hostNetwork ? "" : name,
      log_directory: wish.logDirectory ?? "/tmp",
      port_mappings: (wish.portMappings ?? []).map(({ containerPort, hostPort }) => ({
        container_port: containerPort,
        host_port: hostPort,
      })),
      annotations: wish.annotations ?? {},
      linux: {
        cgroup_parent: this.#cgroup,
        security_context: { namespace_options: namespaceOptions(wish.hostNetwork) },
      },
    };
    const { pod_sandbox_id: id } = await this.#call("RunPodSandbox", { config });
    this.#configs.set(id, config);
    return id;
  }

  async stopPod(id: string): Promise<void> {
    await this.#call("StopPodSandbox", { pod_sandbox_id: id });
  }

  async removePod(id: string): Promise<void> {
    await this.#call("RemovePodSandbox", { pod_sandbox_id: id });
  }

  /** As the kubelet ends a pod: two calls, and so two DELs. */
  async endPod(id: string): Promise<void> {
    await this.stopPod(id);
    await this.removePod(id);
  }

  async podStatus(id: string): Promise<PodStatus> {
    const { status, info } = await this.#call("PodSandboxStatus", { pod_sandbox_id: id, verbose: true });
    const { ip = "", additional_ips: others = [] } = status.network ?? {};
    const { runtimeSpec: spec, pid = 0 } = JSON.parse(info["info"] ?? "{}");
    const namespaces: { type: string; path?: string }[] = spec?.linux?.namespaces ?? [];
    return {
      state: status.state,
      addresses: [ip, ...others.map((other) => other.ip)].filter((address) => address !== ""),
      netns: namespaces.find(({ type }) => type === "network")?.path ?? "",
      pid,
    };
  }

  /** Every sandbox that the runtime knows, with its state. */
  async pods(): Promise<ReadonlyMap<string, PodStatus["state"]>> {
    const { items } = await this.#call("ListPodSandbox", {});
    return new Map(items.map(({ id, state }) => [id, state]));
  }

  /** Starts a busybox container in a pod; answers its id. */
  startContainer(podId: string, script: string): Promise<string> {
    return this.startConfigured(podId, {
      metadata: { name: "main", attempt: 0 },
      image: { image: busyboxImage },
      command: ["/bin/sh", "-c", script],
      log_path: "main.log",
    });
  }

  /** Starts a container as the kubelet asks for it: a ContainerConfig. Answers its id. */
  async startConfigured(podId: string, config: object): Promise<string> {
    const request = { pod_sandbox_id: podId, config, sandbox_config: this.#configs.get(podId) };
    const { container_id } = await this.#call("CreateContainer", request);
    await this.#call("StartContainer", { container_id });
    return container_id;
  }

  /** As the kubelet ends one: SIGTERM, and SIGKILL after so many seconds. */
  async endContainer(containerId: string, seconds: number): Promise<void> {
    await this.#call("StopContainer", { container_id: containerId, timeout: seconds });
    await this.#call("RemoveContainer", { container_id: containerId });
  }

  /** Whether it runs, with what it ended, and its first process as the node counts. */
  async containerStatus(
    containerId: string,
  ): Promise<{ readonly state: string; readonly exitCode: number; readonly pid: number }> {
    const { status, info } = await this.#call("ContainerStatus", { container_id: containerId, verbose: true });
    const { pid = 0 } = JSON.parse(info["info"] ?? "{}");
    return { state: status.state, exitCode: status.exit_code, pid };
  }

  /** Runs a command line in a container; answers its output. @throws where it fails */
  async exec(containerId: string, command: string): Promise<string> {
    const answer = await this.#call("ExecSync", { container_id: containerId, cmd: command.split(" "), timeout: 10 });
    const text = `${new TextDecoder().decode(answer.stdout)}${new TextDecoder().decode(answer.stderr)}`;
    if (answer.exit_code !== 0) throw new Error(`"${command}" ended with ${answer.exit_code}: ${text}`);
    return text;
  }

  #call<M extends keyof Answers>(method: M, request: object): Promise<Answers[M]> {
    const definition = (this.#client as unknown as Record<string, (...args: unknown[]) => void>)[method];
    return new Promise((resolve, reject) => {
      const done = (error: Error | null, answer: Answers[M]): void =>
        error === null ? resolve(answer) : reject(error);
      definition?.call(this.#client, request, { deadline: Date.now() + callWithinMs }, done);
    });
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}

/** Of a pod and its containers: the kubelet says the same for all of them. */
export const namespaceOptions = (hostNetwork = false) =>
  hostNetwork ? { network: "NODE", pid: "CONTAINER", ipc: "POD" } : {};
