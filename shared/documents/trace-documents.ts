import {
  boolean,
  type Infer,
  integer,
  list,
  object,
  oneOf,
  optional,
  required,
  textThat,
  variants,
} from "../schema/mod.ts";
import { count, documentVersion, headOf, nodeName, rows, sentence, values } from "./parts.ts";

/** The ways of packets: what one node has seen of them, and what follows from several nodes. */

export const traceProtocols = ["icmp", "tcp", "udp"] as const;
export type TraceProtocol = (typeof traceProtocols)[number];

/** Which part of a node's data path has decided. */
export const traceComponents = [
  "spoofGuard",
  "packetGuard",
  "connectionTracking",
  "loadBalancing",
  "policy",
  "routing",
  "snat",
  "projects",
  "forwarding",
] as const;
export type TraceComponent = (typeof traceComponents)[number];

/** What it has decided. */
export const traceActions = [
  "received",
  "forwarded",
  "delivered",
  "dropped",
  "rejected",
  "forwardedOutOfNetwork",
] as const;
export type TraceAction = (typeof traceActions)[number];

/** A packet passes each table once, and some twice. */
const maxSteps = 64;
/** Packets that a node keeps of one trace: of real connections the first that match. */
export const maxTracedPackets = 16;

const port = integer(0, 65_535);
const address = textThat("an address", (text) => text.length > 0 && text.length <= 45);
/** Of one pod, or of one service. */
const addresses = list(address, 1, 32);
/** How long a trace may look out: people wait. */
export const maxTraceSeconds = 600;
const directions = oneOf(["egress", "ingress"]);

const step = object({
  component: required(oneOf(traceComponents)),
  action: required(oneOf(traceActions)),
  table: required(sentence, "of Open vSwitch, in which that was seen or decided"),
  atMs: required(count, "when the agent heard of it, milliseconds since 1970"),
  text: required(sentence, "in words"),
  pod: optional(sentence, "namespace/name of whom it is delivered to"),
  port: optional(sentence, "name or number of the port that it came in by, or leaves by"),
  direction: optional(directions, "of the policies"),
  policies: optional(values(sentence), "namespace/name: of the rule that lets it pass, or those that isolate the pod"),
  rule: optional(sentence, "of the policy, as the controller numbers its rules"),
  translatedSource: optional(sentence),
  translatedDestination: optional(sentence),
  tunnelDestination: optional(address, "the other node's address"),
  toNode: optional(nodeName, "the node that it is sent to"),
  destinationMac: optional(sentence),
  ttl: optional(integer(0, 255)),
});

export type TraceStep = Infer<typeof step>;
const steps = list(step, 0, maxSteps);

const packetKeys = {
  family: required(oneOf(["IPv4", "IPv6"])),
  protocol: required(sentence, "`icmp`, `tcp`, `udp`, or a number"),
  source: required(address),
  destination: required(address, "as the sender has it"),
  sourcePort: optional(port),
  destinationPort: optional(port),
  bytes: required(count, "of the packet, from its IP header on"),
} as const;

const tracedPacket = object({
  id: required(sentence, "the same on each node that sees this packet"),
  ...packetKeys,
  steps: required(steps, "in path order"),
  ended: required(boolean, "nothing more is to come of it on this node"),
});

export type TracedPacket = Infer<typeof tracedPacket>;

/** What one node has seen of a trace, as its agent answers the tool. */
export const nodeTraceSchema = object({
  ...headOf("node-trace"),
  session: required(sentence, "under which the agent has it"),
  state: required(oneOf(["looking", "ended"])),
  reason: optional(sentence, "why it has ended before its time"),
  revision: required(count, "grows with each change"),
  dataPath: required(sentence, "how packets reach other nodes from here: mode and encryption, in words"),
  passed: required(count, "packets that were not dropped there"),
  paused: required(boolean, "there were more than can be followed at a time, so that some were not"),
  packets: required(list(tracedPacket, 0, maxTracedPackets), "in the order in which they were first seen"),
});

export type NodeTrace = Infer<typeof nodeTraceSchema>;

export const traceVerdicts = [
  "delivered",
  "dropped",
  "rejected",
  "forwardedOutOfNetwork",
  "forwarded",
  "lost",
  "unknown",
  "nothing",
] as const;
export type TraceVerdict = (typeof traceVerdicts)[number];

/** The way of one packet through the nodes: what `pipette trace --inject` and `--live` print. */
export const traceSchema = object({
  kind: required(oneOf(["trace"])),
  version: required(integer(documentVersion, documentVersion), "of the document's shape"),
  mode: required(oneOf(["injected", "live"])),
  source: required(sentence, "who sends: namespace/name of a pod, or an address"),
  destination: required(sentence, "whom: a pod, a service, an address"),
  startedAtMs: required(count, "milliseconds since 1970"),
  tookMs: required(count),
  packet: optional(object(packetKeys), "as it left its sender; absent where none was seen"),
  nodes: required(
    rows(
      object({
        node: required(nodeName),
        role: required(oneOf(["source", "destination"])),
        dataPath: required(sentence, "how packets reach other nodes from there"),
        steps: required(steps, "in path order"),
      }),
    ),
    "in path order",
  ),
  verdict: required(
    object({
      t: required(oneOf(traceVerdicts)),
      text: required(sentence, "in words"),
      node: optional(nodeName, "that has decided"),
      policies: optional(values(sentence)),
    }),
  ),
  lastSeenAt: optional(
    object({
      node: required(nodeName),
      table: required(sentence),
      atMs: required(count),
      text: required(sentence, "in words"),
    }),
    "the last place where somebody has seen it",
  ),
  failures: required(
    rows(object({ node: required(sentence), reason: required(sentence) })),
    "nodes that could not be asked",
  ),
  remarks: required(values(sentence), "what else the reader has to know"),
});

export type TraceDocument = Infer<typeof traceSchema>;

/** What the tool asks an agent for. */
export const traceRequestSchema = variants("t", "what is to be done", {
  start: object({
    probe: required(textThat("32 hexadecimal digits", isProbe), "random: names the trace on all nodes"),
    role: required(oneOf(["inject", "receive", "live"])),
    seconds: required(integer(1, maxTraceSeconds), "until it ends by itself"),
    sourcePod: optional(sentence, "namespace/name of a pod of this node, that sends"),
    source: optional(addresses, "of whom packets are followed where no pod of this node sends them"),
    destination: optional(addresses),
    protocol: optional(oneOf(traceProtocols)),
    sourcePort: optional(port),
    destinationPort: optional(port),
    tag: optional(integer(1, 63), "the DSCP by which nodes know an injected packet again"),
    through: optional(values(nodeName), "nodes that look out for it: it is sent on to no other"),
  }),
  collect: object({
    session: required(sentence),
    after: required(count, "answers when the revision is higher, or after `waitMs`"),
    waitMs: required(integer(0, 25_000)),
  }),
  end: object({ session: required(sentence) }),
});

export type TraceRequest = Infer<typeof traceRequestSchema>;
export type StartTrace = Extract<TraceRequest, { t: "start" }>;

function isProbe(text: string): boolean {
  return text.length === 32 && [...text].every((char) => "0123456789abcdef".includes(char));
}
