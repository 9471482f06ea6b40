import { CniError } from "../../../shared/errors.ts";
import {
  ApiClient,
  type ClusterAccess,
  listPages,
  operatorAccess,
  type Resource,
} from "../../../shared/kubernetes/mod.ts";
import type { OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { printableLines } from "../../../shared/terminal/printable.ts";
import { Progress } from "../../../shared/terminal/progress.ts";
import type { HostedCommand, TerminalIo } from "../../../shared/terminal/terminal-io.ts";

export const clusterOptions = {
  namespace: {
    value: "NAME",
    short: "n",
    help: "the namespace of names that are given without one (default: the kubeconfig's, else default)",
  },
  kubeconfig: {
    value: "FILE",
    of: "file",
    help: "the API server and who we are there (default: KUBECONFIG, a pod's own account, ~/.kube/config)",
  },
  context: { value: "NAME", help: "of the kubeconfig (default: the current one)" },
  json: { help: "one JSON object, for programs" },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const controllerOption = {
  "ask-controller": {
    help: "asks the controller itself, with the same token or certificate, where the API server does not pass questions on to it",
  },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export interface ClusterOptions {
  readonly namespace: string | undefined;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
}

/** As for wrong arguments: nothing is known. */
export const cannotTell = exitStatus.wrongArguments;

/** Which objects of a resource. */
type Selection = Parameters<typeof listPages>[2];

/** The API server, as a command asks it. */
export class AskedCluster {
  readonly client: ApiClient;
  /** Who asks, and where. */
  readonly access: ClusterAccess;
  /** Of names that are given without one. */
  readonly namespace: string;
  readonly #progress: Progress;
  readonly #watch: HostedCommand["watch"] | undefined;

  constructor(
    client: ApiClient,
    access: ClusterAccess,
    namespace: string,
    progress: Progress,
    watch?: HostedCommand["watch"],
  ) {
    this.client = client;
    this.access = access;
    this.namespace = namespace;
    this.#progress = progress;
    this.#watch = watch;
  }

  /** @throws {ApiError} */
  async list<T>(resource: Resource<T>, selection: Selection = {}): Promise<readonly T[]> {
    const found: T[] = [];
    for await (const { items } of listPages(this.client, resource, selection, new AbortController().signal)) {
      this.#watch?.rested();
      for (const item of items) {
        const value = resource.project(item);
        if (value !== undefined) found.push(value);
      }
      this.#progress.at(`${resource.plural} read`, found.length);
    }
    return found;
  }

  progress(what: string, done: number, total: number): void {
    this.#watch?.works();
    this.#progress.at(what, done, total);
  }
}

/**
 * Does `work` with the API server. What goes wrong is told on stderr.
 * @param action for messages
 * @returns exit status
 */
export async function askCluster(
  { namespace, kubeconfig, context }: ClusterOptions,
  action: string,
  io: TerminalIo,
  work: (cluster: AskedCluster) => Promise<number>,
): Promise<number> {
  try {
    const access = io.hosted?.access ?? (await operatorAccess({ file: kubeconfig, context }, io.env));
    await using client = new ApiClient(access, { env: io.env });
    using progress = new Progress(io, false);
    const within = namespace ?? access.namespace ?? "default";
    return await work(new AskedCluster(client, access, within, progress, io.hosted?.watch));
  } catch (caught) {
    const { message, details } = CniError.from(caught, action);
    io.stderr(`${printableLines(message)}\n${details === "" ? "" : `${printableLines(details)}\n`}`);
    return cannotTell;
  }
}

/** Says why not. @returns the exit status */
export function refuse(io: TerminalIo, action: string, is: string, status: number): number {
  io.stderr(`${printableLines(`Cannot ${action}: ${is}`)}\n`);
  return status;
}
