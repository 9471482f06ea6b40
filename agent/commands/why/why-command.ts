import { hostname } from "node:os";
import {
  type Asked,
  type DocumentSource,
  gather,
  judge,
  openSource,
  type PodName,
  type Verdict,
  verdictObject,
  verdictText,
  type Way,
  type WhoCanBeAsked,
  wayOptions,
} from "../../../operator/mod.ts";
import { ApiClient, operatorAccess } from "../../../shared/kubernetes/mod.ts";
import { paths } from "../../../shared/os/paths.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { defineCommand, type OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { clusterOptions } from "../policy/ask-cluster.ts";
import { askRuntime } from "./container-runtime.ts";
import { thisNode } from "./this-node.ts";

const action = "say why";
/** For the agent behind the socket to say whose it is. */
const hereMs = 3_000;

const options = {
  node: { value: "NAME", help: "the pod's node (default: where the API server says it runs, else this one)" },
  event: {
    value: "TEXT",
    help: "what the pod's event or the runtime's log says, where no API server can be asked for it",
  },
  log: { value: "FILE", of: "file", help: "the agent's log (default: the journal of this node)" },
  runtime: {
    value: "SOCKET",
    of: "file",
    help: "of the container runtime on this node, which is asked of the pod's sandbox (default: containerd's, CRI-O's or k3s')",
  },
  config: { value: "FILE", of: "file", help: `the agent's configuration (default ${paths.agentConfig})` },
  ...{ namespace: clusterOptions.namespace, json: clusterOptions.json },
  ...wayOptions,
} as const satisfies Readonly<Record<string, OptionSpec>>;

interface Given extends Way {
  readonly node: string | undefined;
  readonly event: string | undefined;
  readonly log: string | undefined;
  readonly runtime: string | undefined;
  readonly config: string | undefined;
  readonly namespace: string | undefined;
  readonly json: boolean;
}

export const whyCommand = defineCommand({
  action,
  about: `Says why a pod has no network: the cause, what it rests on, what to do. Asks everybody who may know: the API server
of the pod and its events, the agent of its last calls, addresses, interfaces and policies, on the pod's node the
container runtime, and the node itself where no agent answers. Who cannot be asked is named. Without a pod: why the node gives pods none.`,
  operands: [{ name: "POD", help: "namespace/pod, or a pod of --namespace", optional: true }],
  options,
  exits: {
    0: "it has its network, or none is Pipette's to give",
    1: "there is a cause, and it is named",
    2: "cannot tell, or wrong arguments",
    3: "there is no such pod",
  },
  run: async ({ options: given, operands: [text] }, io) => {
    const failures: Asked[] = [];
    await using asked = new AsyncDisposableStack();
    const isLive = given.bundle === undefined;
    const client = text === undefined || !isLive ? undefined : await clientOf(given, io, failures, asked);
    const pod = text === undefined ? undefined : podOf(text, given.namespace ?? client?.namespace ?? "default");
    const who: WhoCanBeAsked = {
      ...(client === undefined ? {} : { client: client.client }),
      open: (node) => wayTo(node, given, io, asked),
      isHere: (node) => node === hostname() || node === io.env["PIPETTE_NODE_NAME"],
      ...(isLive ? { local: thisNode(given), runtime: (one, signal) => askRuntime(given.runtime, one, signal) } : {}),
      failures,
      ...(given.event === undefined
        ? {}
        : { said: [{ by: "event", from: "as you say", text: given.event, isOfPod: true }] }),
    };
    const facts = await gather(who, pod, given.node ?? (isLive ? undefined : await nodeInBundle(given, pod, io)));
    const verdict = judge(facts);
    const lines = (): string => `${verdictText(verdict, facts).split("\n").map(printable).join("\n")}\n`;
    io.stdout(given.json ? formatJson(verdictObject(verdict, facts)) : lines());
    return statusOf(verdict);
  },
});

const statusOf = ({ t }: Verdict): number =>
  ({
    fine: exitStatus.done,
    cause: exitStatus.failed,
    unknown: exitStatus.wrongArguments,
    absent: exitStatus.notThere,
  })[t];

function podOf(text: string, namespace: string): PodName {
  const [first = "", second] = text.split("/", 2);
  return second === undefined ? { namespace, name: first } : { namespace: first, name: second };
}

/** For each node of a bundle to be looked through. */
const bundleMs = 20_000;

/** Which of a bundle's nodes knows the pod: nobody else can be asked of it. A node that has nothing to tell knows none. */
async function nodeInBundle(given: Given, pod: PodName | undefined, io: TerminalIo): Promise<string | undefined> {
  if (pod === undefined) return undefined;
  try {
    await using source = await openSource(given, false, io);
    const signal = AbortSignal.timeout(bundleMs);
    const name = `${pod.namespace}/${pod.name}`;
    for (const node of await source.nodes(signal)) {
      const rows = await Promise.all([
        source.get(node, { kind: "pods", name }, signal).then(
          (one) => one.t === "document" && one.document.pods.length > 0,
          () => false,
        ),
        source.get(node, { kind: "calls", name }, signal).then(
          (one) => one.t === "document" && one.document.calls.length > 0,
          () => false,
        ),
      ]);
      if (rows.includes(true)) return node;
    }
  } catch {
    // Who gathers meets the same, and says so.
  }
  return undefined;
}

/**
 * The way that the options name, else the socket, where the agent behind it is the pod's node's, else the API server.
 * @throws {CniError} 7 why none can be gone
 */
async function wayTo(
  node: string | undefined,
  given: Given,
  io: TerminalIo,
  resources: AsyncDisposableStack,
): Promise<DocumentSource> {
  // A socket beside a kubeconfig: the agent is asked there, and the API server of the pod.
  const way = given.socket === undefined ? given : { ...given, kubeconfig: undefined, context: undefined };
  const isNamed = [given.socket, given.kubeconfig, given.context, given.bundle].some((one) => one !== undefined);
  const source = resources.use(await openSource(way, isNamed && node !== undefined && given.socket === undefined, io));
  if (isNamed || node === undefined) return source;
  const here = await source.nodes(AbortSignal.timeout(hereMs)).catch((): readonly string[] => []);
  return here.length === 0 || here.includes(node) ? source : resources.use(await openSource(given, true, io));
}

/** Without a kubeconfig there is still the agent: then it is only named. */
async function clientOf(
  { kubeconfig, context }: Given,
  io: TerminalIo,
  failures: Asked[],
  resources: AsyncDisposableStack,
): Promise<{ readonly client: ApiClient; readonly namespace: string | undefined } | undefined> {
  try {
    const access = await operatorAccess({ file: kubeconfig, context }, io.env);
    return { client: resources.use(new ApiClient(access, { env: io.env })), namespace: access.namespace };
  } catch (caught) {
    failures.push({ source: "the API server", failure: reasonOf(caught) });
    return undefined;
  }
}
