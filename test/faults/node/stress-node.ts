/** The data path under a node; which faults can happen depends on it. */
export type StressKind = "bridge" | "ovs" | "hns";

export type StressVerb = "ADD" | "DEL" | "CHECK" | "GC" | "STATUS";

/** One pod as its runtime has it, which stands whatever the calls about it answered. */
export interface StressPod {
  readonly network: string;
  readonly containerId: string;
  readonly ifname: string;
  /** A path of the node's, or under Windows the GUID of its namespace. */
  readonly netns: string;
  /** What the last successful ADD answered, without prefix length; empty before. */
  addresses: readonly string[];
  /** That result whole, for the CHECK and the DEL that follow. */
  result: unknown;
}

/** How one call of the plugin ended. */
export type StressOutcome =
  | { readonly t: "ok"; readonly ms: number; readonly result: unknown }
  | { readonly t: "error"; readonly ms: number; readonly code: number; readonly message: string }
  /** Ended by a signal, or with something that is no CNI error: allowed only where the caller killed it. */
  | { readonly t: "died"; readonly ms: number; readonly how: string };

/** What a process holds: each of them must be flat over time. */
export interface Holdings {
  /** Another one says that the agent was started again. */
  readonly pid: number;
  readonly residentMb: number;
  readonly descriptors: number;
  readonly threads: number;
}

/** A node that a test may treat as badly as it likes: a compiled agent and plugin on a machine of their own. */
export interface StressNode extends AsyncDisposable {
  readonly kind: StressKind;
  /** No call may take longer, whatever happens: what the configuration allows, and a margin for starting a process. */
  readonly deadlineMs: Readonly<Record<StressVerb, number>>;
  /** A sandbox as a runtime makes it before ADD. */
  makePod(): Promise<StressPod>;
  /** The runtime takes the sandbox away; after the DEL that succeeded. */
  removePod(pod: StressPod): Promise<void>;
  /** Starts the plugin as a runtime does. GC keeps `keep` only; STATUS needs no pod. Never throws for what the plugin does. */
  call(verb: "ADD" | "DEL" | "CHECK", pod: StressPod): Promise<StressOutcome>;
  gc(keep: readonly StressPod[]): Promise<StressOutcome>;
  status(): Promise<StressOutcome>;
  /** What its agent says against itself to people, which is more than takes the node out of service. */
  problems(): Promise<readonly string[]>;
  /** Starts the agent, for the first time or again, and waits until it is ready. */
  startAgent(): Promise<void>;
  /** Ends the agent and waits for that. */
  endAgent(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
  /** SIGSTOP, SIGCONT. */
  freezeAgent(): void;
  thawAgent(): void;
  agentRuns(): boolean;
  /** Whether the pod reaches its gateway; a packet that crosses the data path, not an answer of our own. */
  reaches(pod: StressPod): Promise<boolean>;
  /**
   * What is not of one mind after a moment: leases, interfaces, namespaces, flows, the runtime's `pods`, and what ended
   * processes left (temporary files, locks, namespaces). One sentence each; empty where all is well.
   */
  disagreements(pods: readonly StressPod[]): Promise<readonly string[]>;
  /** Of the running agent. */
  holdings(): Holdings;
  /** Of the lease database with its log. */
  databaseBytes(): Promise<number>;
  /** The last lines of the agent that runs, or ran last: to be printed where something is wrong. */
  agentLog(): readonly string[];
}

/** With an agent that is ready; a node whose agent cannot be started is gone again. */
export async function withAgent<Node extends StressNode>(node: Node): Promise<Node> {
  try {
    await node.startAgent();
    return node;
  } catch (caught) {
    await node[Symbol.asyncDispose]();
    throw caught;
  }
}
