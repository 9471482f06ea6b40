import {
  documentVersion,
  type NodeTrace,
  type TraceDocument,
  type TracedPacket,
  type TraceStep,
} from "../../shared/documents/mod.ts";
import type { NodeFailure } from "../ask-nodes.ts";

/** A packet on one node. */
export interface Part {
  readonly trace: NodeTrace;
  readonly packet: TracedPacket;
}

/** What is known of the next node, to which the last one has sent the packet. */
export type Onward =
  /** Nobody was asked there, since this way does not lead there. */
  | { readonly t: "elsewhere" }
  /** It could not be asked, so that nothing was sent there. */
  | { readonly t: "blind"; readonly reason: string }
  /** It has looked out, and has not seen it. */
  | { readonly t: "unseen" }
  /** It had others to follow at that time. */
  | { readonly t: "busy" };

export interface Composed {
  readonly mode: TraceDocument["mode"];
  readonly source: string;
  readonly destination: string;
  readonly startedAtMs: number;
  /** In path order: of the node that has sent it, and of the one that has got it. */
  readonly parts: readonly Part[];
  readonly onward: Onward;
  /** What there is to say where nothing was seen. */
  readonly nothing: string;
  readonly failures: readonly NodeFailure[];
  readonly remarks: readonly string[];
}

/** The way of one packet, out of what single nodes have seen. */
export function compose(given: Composed, nowMs = Date.now()): TraceDocument {
  const { mode, source, destination, startedAtMs, parts, failures, remarks } = given;
  const [first] = parts;
  const last = parts.at(-1);
  const step = last?.packet.steps.at(-1);
  return {
    ...{ kind: "trace", version: documentVersion, mode, source, destination, startedAtMs },
    tookMs: Math.max(0, nowMs - startedAtMs),
    ...(first === undefined ? {} : { packet: headersOf(first.packet) }),
    nodes: parts.map(({ trace, packet }, i) => ({
      node: trace.node,
      role: i === 0 && !isReceived(packet) ? "source" : "destination",
      dataPath: trace.dataPath,
      steps: packet.steps,
    })),
    verdict:
      last === undefined || step === undefined
        ? { t: mode === "live" && failures.length === 0 ? "nothing" : "unknown", text: given.nothing }
        : verdictOf(last.trace.node, step, given.onward),
    ...(last === undefined || step === undefined
      ? {}
      : { lastSeenAt: { node: last.trace.node, table: step.table, atMs: step.atMs, text: step.text } }),
    ...{ failures, remarks },
  };
}

const isReceived = ({ steps }: TracedPacket): boolean => steps[0]?.action === "received";

function headersOf({ id: _, steps: __, ended: ___, ...headers }: TracedPacket): NonNullable<TraceDocument["packet"]> {
  return headers;
}

function verdictOf(node: string, step: TraceStep, onward: Onward): TraceDocument["verdict"] {
  const { action, text, policies } = step;
  const at = `node ${node}, table ${step.table}`;
  switch (action) {
    case "delivered":
      return { t: "delivered", node, text: `delivered on node ${node} ${text}` };
    case "dropped":
      return { t: "dropped", node, text: `dropped at ${at}: ${text}`, ...(policies && { policies }) };
    case "rejected":
      return { t: "rejected", node, text: `rejected at ${at}: ${text}` };
    case "forwardedOutOfNetwork":
      return { t: "forwardedOutOfNetwork", node, text: `it leaves the network at node ${node}: ${text}` };
    default:
      return onwardVerdict(node, step, onward);
  }
}

function onwardVerdict(node: string, { text, toNode }: TraceStep, onward: Onward): TraceDocument["verdict"] {
  const next = toNode === undefined ? "the next node" : `node ${toNode}`;
  const seen = `last seen at node ${node}: ${text}`;
  switch (onward.t) {
    case "elsewhere":
      return { t: "forwarded", node, text: `goes on to ${next}: ${text}` };
    case "blind":
      return { t: "unknown", node, text: `${seen}; ${next} did not look out (${onward.reason})` };
    case "busy":
      return { t: "unknown", node, text: `${seen}; ${next} has followed others meanwhile` };
    case "unseen":
      return { t: "lost", node, text: `${seen}; ${next} has not seen it: look at the network between the two nodes` };
  }
}
