import { pause } from "../../../../shared/async/abortable.ts";
import { Backoff } from "../../../../shared/async/backoff.ts";
import { isWindows } from "../../../../shared/os/platform.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import {
  type ConnectionEvent,
  forwardRequests,
  OpenFlowClient,
  OpenFlowError,
  parseAddress,
} from "../../../protocols/openflow/mod.ts";
import { isLearned, isOfTrace } from "../pipeline/cookie.ts";

/** Every bound of the program, with its unit in the name and its reason. */
export const programBounds = {
  /**
   * How long a change waits for the switch, which restarts in a fraction of a second; after this the pod's ADD fails
   * and is tried again.
   */
  setMs: 10_000,
  /** How long the clean-up after a start is waited for; it is done later if this is too short. */
  finishMs: 30_000,
  /** Deadline of one bundle: ten thousand flows take 0.1 s, and a swapping machine a hundred times as long. */
  bundleMs: 30_000,
  /** Calls that wait for their turn: one for each node of a large cluster, twice. */
  waitingCalls: 10_000,
  /** Flows and groups of one bundle, unless one call alone has more. */
  bundleMessages: 20_000,
  /** Silence after which the switch gets an echo request, and the deadline of its answer. */
  idleMs: 3_000,
  answerMs: 5_000,
  /** Between two attempts to connect: short while a restart may be under way, then twice as long each time. */
  retryFirstMs: 20,
  retryBriskMs: 3_000,
  retryMaxMs: 1_000,
} as const;

export type ProgramBounds = Readonly<Record<keyof typeof programBounds, number>>;

export interface KeptConnection {
  readonly management: string;
  readonly bounds: ProgramBounds;
  /** Aborted when no connection is needed any more. */
  readonly closing: AbortSignal;
  /** Uses a connection until it ends, and throws then. */
  serve(client: OpenFlowClient): Promise<never>;
  /** Called with asynchronous messages of the switch. */
  onEvent(event: ConnectionEvent): void;
  /** Called when there is no connection, with the reason. */
  down(reason: string): void;
}

/** Keeps connecting until `closing`: at once after a restart of the switch, rarely if it stays away. */
export async function keepConnected({
  management,
  bounds,
  closing,
  serve,
  onEvent,
  down,
}: KeptConnection): Promise<void> {
  const address = parseAddress(management, isWindows);
  const timing = { connectMs: bounds.answerMs, requestMs: bounds.answerMs, idleMs: bounds.idleMs };
  const options = { ...timing, onEvent };
  const backoff = new Backoff({ firstMs: bounds.retryFirstMs, longestMs: bounds.retryMaxMs });
  let goneAt = performance.now();
  while (!closing.aborted) {
    const beganAt = performance.now();
    try {
      using client = await OpenFlowClient.connect(address, options);
      const close = (): void => client[Symbol.dispose]();
      closing.addEventListener("abort", close, { once: true });
      if (closing.aborted) close();
      await serve(client).finally(() => closing.removeEventListener("abort", close));
    } catch (caught) {
      down(reasonOf(caught));
    }
    const now = performance.now();
    // A switch that accepts connections and closes them at once counts as away.
    if (now - beganAt > bounds.retryMaxMs) goneAt = now;
    // It may be restarting.
    if (now - goneAt <= bounds.retryBriskMs) backoff.reset();
    await pause(backoff.next(), closing);
  }
}

/**
 * Subscribes to changes by others: flows by a flow monitor, groups and meters as forwarded requests. This connection's
 * own changes are reported briefly, with eight bytes each.
 * @returns why it does not report flows; nothing where it does
 * @throws {OpenFlowError} where the connection is lost
 */
export async function watchForeignChanges(client: OpenFlowClient): Promise<string | undefined> {
  try {
    // A refusal here does not affect the flow monitor.
    await client.run([forwardRequests]);
    await client.watchFlows();
    return undefined;
  } catch (caught) {
    if (!(caught instanceof OpenFlowError) || caught.kind === "lost") throw caught;
    return caught.message;
  }
}

/**
 * Whether somebody else may have changed something of ours. Learned flows do not count; a switch that cannot keep up
 * reports `paused` instead of the events.
 */
export function isForeignChange(event: ConnectionEvent): boolean {
  switch (event.t) {
    case "flow-update":
      return event.event !== "own" && !isLearned(event.cookie) && !isOfTrace(event.cookie);
    case "request-forwarded":
    case "unreadable":
      return true;
    default:
      return false;
  }
}
