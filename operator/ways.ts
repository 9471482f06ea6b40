import { existsSync } from "node:fs";
import { isNodeName } from "../shared/documents/mod.ts";
import { CniCode, CniError } from "../shared/errors.ts";
import { paths } from "../shared/os/paths.ts";
import { isWindows } from "../shared/os/platform.ts";
import { show } from "../shared/schema/json-fields.ts";
import type { OptionSpec } from "../shared/terminal/command.ts";
import type { TerminalIo } from "../shared/terminal/terminal-io.ts";
import type { DocumentSource } from "./document-source.ts";

/** Options of every command that asks nodes: which way to go. */
export const wayOptions = {
  socket: { value: "PATH", of: "file", help: `asks the agent that listens there (default ${paths.agentSocket})` },
  kubeconfig: {
    value: "FILE",
    of: "file",
    help: "asks agents by way of the API server (default where no agent listens here: KUBECONFIG, a pod's own account, ~/.kube/config)",
  },
  context: { value: "NAME", help: "of the kubeconfig (default: the current one)" },
  "agents-namespace": { value: "NAME", help: "in which Pipette's agents are (default kube-system)" },
  bundle: { value: "PATH", of: "file", help: "asks nobody: reads a support bundle, a directory or an archive" },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** Which nodes; absent: the one whose agent is asked, and all of a cluster or a bundle. */
export const nodeOptions = {
  node: { value: "NAME", repeats: true, help: "asks this node's agent" },
  "all-nodes": { short: "A", help: "asks the agents of all nodes" },
} as const satisfies Readonly<Record<string, OptionSpec>>;

export interface Way {
  readonly socket: string | undefined;
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
  readonly "agents-namespace": string | undefined;
  readonly bundle: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Opens what the options name; without them the socket, where there is one and this node is meant, else the API server.
 * @param elsewhere other nodes than this one are asked for
 * @throws {CniError} 7, with both ways where neither can be gone
 */
export async function openSource(
  way: Way,
  elsewhere: boolean,
  { env, isKubectl = false }: Pick<TerminalIo, "env" | "isKubectl">,
): Promise<DocumentSource> {
  const { socket, kubeconfig, context, bundle } = way;
  const named = [socket, bundle, kubeconfig ?? context].filter((one) => one !== undefined);
  if (named.length > 1)
    throw new CniError(
      CniCode.invalidConfig,
      'Cannot choose a way: several are named, wanted one of "--socket", "--bundle", "--kubeconfig" and "--context"',
    );
  if (bundle !== undefined) {
    const { BundleSource } = await import("./bundle/bundle-source.ts");
    return await BundleSource.open(bundle);
  }
  if (socket !== undefined) return await socketSource(socket);
  const isCluster = kubeconfig !== undefined || context !== undefined;
  if (!isCluster && !elsewhere && !isKubectl && isThere(paths.agentSocket))
    return await socketSource(paths.agentSocket);
  try {
    return await clusterSource(way, env);
  } catch (caught) {
    if (isCluster) throw caught;
    const { message } = CniError.from(caught, "ask the API server");
    const here = elsewhere || isKubectl ? "" : `: no agent listens at "${paths.agentSocket}", and`;
    throw new CniError(CniCode.invalidConfig, `Cannot ask an agent${here} by the API server: ${message}`, {
      cause: caught,
    });
  }
}

async function clusterSource(
  { kubeconfig: file, context, "agents-namespace": namespace = "kube-system" }: Way,
  env: Environment,
): Promise<DocumentSource> {
  const { ApiClient, operatorAccess } = await import("../shared/kubernetes/mod.ts");
  const { ClusterSource } = await import("./cluster/cluster-source.ts");
  if (!isNodeName(namespace))
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot choose a way: "--agents-namespace" is ${show(namespace)}, wanted a namespace`,
    );
  return new ClusterSource(new ApiClient(await operatorAccess({ file, context }, env), { env }), namespace);
}

/** A pipe of Windows cannot be looked for without connecting to it. */
const isThere = (socket: string): boolean => isWindows || existsSync(socket);

async function socketSource(socket: string): Promise<DocumentSource> {
  const { SocketSource } = await import("./socket-source.ts");
  return new SocketSource(socket);
}
