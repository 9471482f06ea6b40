import type { StartTrace, TraceDocument, TracedPacket, TraceProtocol } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatIp } from "../../shared/net/ip.ts";
import type { NodeFailure } from "../ask-nodes.ts";
import type { DocumentSource } from "../document-source.ts";
import { compose, type Onward, type Part } from "./compose.ts";
import { type End, endText, findReceiver, findSender } from "./ends.ts";
import { NodeSession } from "./sessions.ts";

export interface LiveWatch {
  /** Either may be `any`, and not both. */
  readonly from: string;
  readonly to: string;
  readonly protocol?: TraceProtocol;
  readonly port?: number;
  /** Only connections that are dropped. */
  readonly dropped: boolean;
  /** How long to look out. */
  readonly seconds: number;
}

/** Nodes with endpoints of a service that look out too. */
const maxLooking = 16;
/** Until another node has told of a packet, once it was sent there. */
const arriveMs = 2_000;

/**
 * Waits for the next real connection that matches, and says what became of its first packet. Nothing is sent, and
 * nothing is changed about it.
 * @throws {CniError} where it cannot be begun
 */
export async function traceLive(
  source: DocumentSource,
  wanted: LiveWatch,
  signal: AbortSignal,
): Promise<TraceDocument> {
  const startedAtMs = Date.now();
  const sender = await findSender(source, wanted.from, signal);
  const from = sender.end.t === "pod" ? sender.end.node : undefined;
  const receiver = await findReceiver(source, wanted.to, { ...wanted, ...(from !== undefined && { from }) }, signal);
  const places = placesOf(source, sender.end, receiver.end);
  const failures: NodeFailure[] = [...sender.failures, ...receiver.failures];
  const sessions: NodeSession[] = [];
  try {
    // Those that packets come to are first, so that none is missed that the sender's node tells of.
    for (const place of places.toReversed()) {
      const request = requestOf(place, sender.end, receiver.end, wanted);
      try {
        sessions.unshift(await NodeSession.start(source, place.node, request, signal));
      } catch (caught) {
        failures.push({ node: place.node, reason: CniError.from(caught, "trace packets").message });
      }
    }
    const [failure] = failures;
    if (sessions.length === 0 && failure !== undefined) throw new CniError(CniCode.tryAgainLater, failure.reason);
    const { parts, onward } = await wait(sessions, wanted, failures, signal);
    const passed = sessions.reduce((sum, { last }) => Math.max(sum, last.passed), 0);
    const what = wanted.dropped ? "was dropped" : "came";
    for (const { node, failure: reason } of sessions) if (reason !== undefined) failures.push({ node, reason });
    return compose({
      ...{ mode: "live", source: endText(sender.end), destination: endText(receiver.end), startedAtMs, parts, onward },
      nothing: `no connection that matches ${what} within ${wanted.seconds} s${passed > 0 ? `; ${passed} got through or on` : ""}`,
      ...{ failures, remarks: remarksOf(source, sessions) },
    });
  } finally {
    await Promise.all(sessions.map((one) => one.end()));
  }
}

interface Place {
  readonly node: string;
  /** `asks`: that of the sender. `answers`: that of a receiver. */
  readonly side: "asks" | "answers";
}

/** Where to look out, in path order. @throws {CniError} where nobody knows a node */
function placesOf(source: DocumentSource, sender: End, receiver: End): readonly Place[] {
  const asks = sender.t === "pod" || sender.t === "address" ? sender.node : undefined;
  const answers =
    receiver.t === "service"
      ? receiver.nodes.slice(0, maxLooking)
      : receiver.t === "any" || receiver.node === undefined
        ? []
        : [receiver.node];
  const all: readonly Place[] = [
    ...(asks === undefined ? [] : [{ node: asks, side: "asks" } as const]),
    ...answers.filter((node) => node !== asks).map((node) => ({ node, side: "answers" }) as const),
  ];
  const own = source.isOneNode === true ? all.filter((place) => isHere(place, sender, receiver)) : all;
  if (own.length > 0) return own;
  const is = "neither sender nor receiver is on a node that can be asked";
  throw new CniError(CniCode.invalidConfig, `Cannot trace packets: ${is}, wanted a pod as one of them`);
}

/** By a socket only this node's pods have been found. */
const isHere = ({ side }: Place, sender: End, receiver: End): boolean =>
  (side === "asks" ? sender : receiver).t === "pod";

function requestOf({ side }: Place, sender: End, receiver: End, wanted: LiveWatch): Omit<StartTrace, "t"> {
  const service = receiver.t === "service" ? receiver : undefined;
  const protocol = wanted.protocol ?? service?.protocol ?? (wanted.port === undefined ? undefined : "tcp");
  const port = service?.port ?? wanted.port;
  // Behind a service packets are for an endpoint, and for its port.
  const knowsReceiver = side === "asks" || service === undefined;
  const senders = sender.t === "any" ? undefined : sender.ips.map(formatIp);
  const receivers = receiver.t === "any" || !knowsReceiver ? undefined : receiver.ips.map(formatIp);
  return {
    ...{ probe: Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex"), role: "live" },
    seconds: wanted.seconds,
    ...(side === "asks" && sender.t === "pod" ? { sourcePod: sender.name } : senders && { source: senders }),
    ...(receivers && { destination: receivers }),
    ...(protocol === undefined ? {} : { protocol }),
    ...(port === undefined || protocol === "icmp" || !knowsReceiver ? {} : { destinationPort: port }),
  };
}

/** Until one of them has what is wanted, or their time is over. */
async function wait(
  sessions: readonly NodeSession[],
  { dropped, seconds }: LiveWatch,
  failures: readonly NodeFailure[],
  signal: AbortSignal,
): Promise<{ readonly parts: readonly Part[]; readonly onward: Onward }> {
  const until = performance.now() + seconds * 1000;
  const nothing = { parts: [], onward: { t: "elsewhere" } } as const;
  // What was dropped on any node; else what the first of them has seen.
  const asked = dropped ? sessions : sessions.slice(0, 1);
  const waiting = new Map<NodeSession, Promise<void>>();
  for (;;) {
    for (const session of asked) {
      const packet = session.last.packets.find((one) => isWanted(one, dropped));
      if (packet !== undefined) return await wholeWay(session, packet, sessions, failures, signal);
    }
    const leftMs = until - performance.now();
    const open = asked.filter(({ isOver }) => !isOver);
    if (leftMs <= 0 || open.length === 0 || signal.aborted) return nothing;
    for (const session of open)
      if (!waiting.has(session))
        waiting.set(
          session,
          session.news(leftMs, signal).finally(() => waiting.delete(session)),
        );
    await Promise.race(waiting.values());
  }
}

const isWanted = ({ ended, steps }: TracedPacket, dropped: boolean): boolean => {
  const action = steps.at(-1)?.action;
  return ended && action !== undefined && (!dropped || action === "dropped" || action === "rejected");
};

/** With what the other nodes have seen of the same packet. */
async function wholeWay(
  session: NodeSession,
  packet: TracedPacket,
  sessions: readonly NodeSession[],
  failures: readonly NodeFailure[],
  signal: AbortSignal,
): Promise<{ readonly parts: readonly Part[]; readonly onward: Onward }> {
  const part = { trace: session.last, packet };
  const isFirst = packet.steps[0]?.action !== "received";
  const { toNode = "" } = packet.steps.at(-1) ?? {};
  const elsewhere = { t: "elsewhere" } as const;
  if (!isFirst) {
    const before = await sameOn(
      sessions.filter((one) => one !== session),
      packet.id,
      signal,
    );
    return { parts: [...(before === undefined ? [] : [before]), part], onward: elsewhere };
  }
  const next = sessions.find(({ node }) => node === toNode && node !== session.node);
  const failure = failures.find(({ node }) => node === toNode);
  if (next === undefined)
    return { parts: [part], onward: failure === undefined ? elsewhere : { t: "blind", reason: failure.reason } };
  const after = await sameOn([next], packet.id, signal);
  if (after !== undefined) return { parts: [part, after], onward: elsewhere };
  if (next.failure !== undefined) return { parts: [part], onward: { t: "blind", reason: next.failure } };
  return { parts: [part], onward: { t: next.last.paused ? "busy" : "unseen" } };
}

async function sameOn(sessions: readonly NodeSession[], id: string, signal: AbortSignal): Promise<Part | undefined> {
  const until = performance.now() + arriveMs;
  for (;;) {
    for (const session of sessions) {
      const packet = session.last.packets.find((one) => one.id === id && one.ended);
      if (packet !== undefined) return { trace: session.last, packet };
    }
    const leftMs = until - performance.now();
    const open = sessions.filter(({ isOver }) => !isOver);
    if (leftMs <= 0 || open.length === 0) return undefined;
    await Promise.all(open.map((session) => session.news(Math.min(leftMs, 500), signal)));
  }
}

function remarksOf(source: DocumentSource, sessions: readonly NodeSession[]): readonly string[] {
  return [
    ...(source.isOneNode === true ? ["only this node was asked: --kubeconfig asks all"] : []),
    ...sessions
      .filter(({ last }) => last.paused)
      .map(({ node }) => `on node ${node} more connections matched than are followed at a time`),
  ];
}
