import type { StartTrace, TraceDocument, TraceProtocol } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { type Family, formatIp, type Ip } from "../../shared/net/ip.ts";
import type { NodeFailure } from "../ask-nodes.ts";
import type { DocumentSource } from "../document-source.ts";
import { compose, type Onward, type Part } from "./compose.ts";
import { type End, endText, findReceiver, findSender } from "./ends.ts";
import { beginOn, NodeSession } from "./sessions.ts";

export interface Injection {
  readonly from: string;
  readonly to: string;
  /** Absent: that of the service, else ICMP. */
  readonly protocol?: TraceProtocol;
  readonly port?: number;
  /** Absent: IPv4 where both have it. */
  readonly family?: Family;
}

/** Of a session, by which it ends where nobody ends it. */
const sessionSeconds = 30;
/** Until the sender's node has told of the packet: switches take milliseconds, a busy machine more. */
const seenMs = 5_000;
/** Until another node has told of it, once it was sent there. */
const arriveMs = 2_000;
/** A first packet may be lost while a switch asks for its neighbour. */
const attempts = 2;
/** Nodes that look out for the packet of a service: one of its endpoints answers. */
const maxLooking = 32;
/** Ports of clients (RFC 6056, 3.2), of which one is chosen at random. */
const clientPorts = { first: 49_152, count: 16_384 } as const;
/** Of DSCP, what is left to experiments and local use (RFC 2474, 6): pods hardly ever use it. */
const tags = Array.from({ length: 16 }, (_, i) => i * 4 + 3);

/**
 * Sends a packet as if a pod had sent it, and follows it from node to node. It is delivered to nobody, and to another
 * node it is sent only where that one looks out for it.
 * @throws {CniError} where it cannot be begun
 */
export async function traceInjected(
  source: DocumentSource,
  wanted: Injection,
  signal: AbortSignal,
): Promise<TraceDocument> {
  const startedAtMs = Date.now();
  const sender = await findSender(source, wanted.from, signal);
  if (sender.end.t !== "pod") throw wrong(`"${wanted.from}" is no pod, wanted one, since a packet is sent in its name`);
  const { node } = sender.end;
  const receiver = await findReceiver(source, wanted.to, { ...wanted, from: node }, signal);
  const plan = planOf(sender.end, receiver.end, wanted);
  const elsewhere = nodesOf(receiver.end).filter((one) => one !== node);
  const reachable = source.isOneNode === true ? [] : elsewhere.slice(0, maxLooking);
  const failures: NodeFailure[] = [...sender.failures, ...receiver.failures];
  for (let attempt = 1; ; attempt++) {
    const { parts, onward, blind } = await follow(source, node, reachable, plan, signal);
    if (onward.t === "unseen" && attempt < attempts) continue;
    const unseen =
      attempt > 1
        ? [`it was sent ${attempt} times, since the first may be lost while a switch asks for its neighbour`]
        : [];
    return compose({
      ...{ mode: "injected", source: sender.end.name, destination: endText(receiver.end), startedAtMs, parts, onward },
      nothing: `node ${node} has not seen it: its switch did not take the packet`,
      failures: distinct([...failures, ...blind]),
      remarks: [...unseen, ...remarksOf(source, elsewhere)],
    });
  }
}

/** Who asks by a socket asks one node. */
function remarksOf(source: DocumentSource, elsewhere: readonly string[]): readonly string[] {
  if (elsewhere.length === 0) return [];
  if (source.isOneNode === true)
    return ["other nodes are not asked by the socket of this one, so nothing is sent there: --kubeconfig asks all"];
  return elsewhere.length > maxLooking ? [`${maxLooking} of ${elsewhere.length} nodes with endpoints look out`] : [];
}

type Plan = Pick<StartTrace, "protocol" | "destination" | "destinationPort"> & {
  readonly pod: string;
  readonly source: Ip;
  readonly protocol: TraceProtocol;
};

function planOf(sender: Extract<End, { t: "pod" }>, receiver: End, { protocol, port, family }: Injection): Plan {
  if (receiver.t === "any")
    throw wrong("nobody in particular is no destination, wanted a pod, a service or an address");
  const isService = receiver.t === "service";
  const chosen = protocol ?? (isService ? receiver.protocol : port === undefined ? "icmp" : "tcp");
  const destinationPort = isService ? receiver.port : port;
  if (chosen !== "icmp" && destinationPort === undefined) throw wrong(`${chosen} needs a port, wanted --port`);
  const families = family === undefined ? ([4, 6] as const) : [family];
  for (const each of families) {
    const source = sender.ips.find((ip) => ip.family === each);
    const destination = receiver.ips.find((ip) => ip.family === each);
    if (source === undefined || destination === undefined) continue;
    return {
      ...{ pod: sender.name, source, protocol: chosen, destination: [formatIp(destination)] },
      ...(chosen === "icmp" || destinationPort === undefined ? {} : { destinationPort }),
    };
  }
  const which = family === undefined ? "the same family" : `IPv${family}`;
  throw wrong(`"${sender.name}" and "${endText(receiver)}" have no addresses of ${which}`);
}

const nodesOf = (end: End): readonly string[] =>
  end.t === "service" ? end.nodes : end.t === "any" || end.node === undefined ? [] : [end.node];

interface Followed {
  readonly parts: readonly Part[];
  readonly onward: Onward;
  /** Nodes that do not look out, and why. */
  readonly blind: readonly NodeFailure[];
}

/** One attempt: all that look out begin before the packet is sent. */
async function follow(
  source: DocumentSource,
  node: string,
  others: readonly string[],
  { pod, source: ip, ...plan }: Plan,
  signal: AbortSignal,
): Promise<Followed> {
  const common = { ...plan, ...chance(), seconds: sessionSeconds };
  const looking = await beginOn(source, others, { ...common, role: "receive", source: [formatIp(ip)] }, signal);
  const through = looking.sessions.map((one) => one.node);
  const sessions = [...looking.sessions];
  try {
    const sent = await NodeSession.start(source, node, { ...common, role: "inject", sourcePod: pod, through }, signal);
    sessions.push(sent);
    const first = await packetOf(sent, seenMs, signal);
    if (first === undefined) return { parts: [], onward: { t: "elsewhere" }, blind: looking.failures };
    const { toNode = "" } = first.packet.steps.at(-1) ?? {};
    const receiver = looking.sessions.find((one) => one.node === toNode);
    const second = receiver === undefined ? undefined : await packetOf(receiver, arriveMs, signal);
    if (second !== undefined) return { parts: [first, second], onward: { t: "elsewhere" }, blind: looking.failures };
    return { parts: [first], onward: onwardOf(receiver, looking.failures, toNode), blind: looking.failures };
  } finally {
    await Promise.all(sessions.map((one) => one.end()));
  }
}

function onwardOf(receiver: NodeSession | undefined, failures: readonly NodeFailure[], toNode: string): Onward {
  if (receiver?.failure !== undefined) return { t: "blind", reason: receiver.failure };
  if (receiver !== undefined) return { t: "unseen" };
  const failure = failures.find((one) => one.node === toNode);
  return failure === undefined ? { t: "elsewhere" } : { t: "blind", reason: failure.reason };
}

/** The packet, once all of it is told; as far as it is told where that takes too long. */
async function packetOf(session: NodeSession, withinMs: number, signal: AbortSignal): Promise<Part | undefined> {
  const until = performance.now() + withinMs;
  for (;;) {
    const [packet] = session.last.packets;
    const leftMs = until - performance.now();
    if (packet?.ended !== true && leftMs > 0 && !session.isOver) {
      await session.news(leftMs, signal);
      continue;
    }
    return packet === undefined ? undefined : { trace: session.last, packet };
  }
}

/** What tells one trace from another, and from what pods send. */
function chance(): Pick<StartTrace, "probe" | "sourcePort" | "tag"> {
  const probe = crypto.getRandomValues(new Uint8Array(16));
  const [port = 0, tag = 0] = crypto.getRandomValues(new Uint16Array(2));
  return {
    probe: Buffer.from(probe).toString("hex"),
    sourcePort: clientPorts.first + (port % clientPorts.count),
    tag: tags[tag % tags.length] ?? 3,
  } as const;
}

const distinct = (failures: readonly NodeFailure[]): readonly NodeFailure[] => [
  ...new Map(failures.map((one) => [one.node, one])).values(),
];

const wrong = (is: string): CniError => new CniError(CniCode.invalidConfig, `Cannot trace packets: ${is}`);
