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
import { isLearned } from "../pipeline/cookie.ts";

/** Every bound of the program, with its unit in the name and its reason. */
export const programBounds = {
  /** A change waits for the switch: one that restarts is back in a fraction of a second. Longer, and the pod's ADD is tried anew. */
  setMs: 10_000,
  /** The clean-up after a start is asked for once, and done later where this was too short. */
  finishMs: 30_000,
  /** One bundle of ten thousand flows takes 0.1 s; a machine that pages takes a hundred times as much. */
  bundleMs: 30_000,
  /** Calls that wait for their turn: one for each node of a large cluster, twice. */
  waitingCalls: 10_000,
  /** Flows and groups of one bundle, unless one call alone has more. */
  bundleMessages: 20_000,
  /** Silence after which the switch is asked whether it is there, and what its answer may take. */
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
  /** Aborted when there is to be no connection any more. */
  readonly closing: AbortSignal;
  /** Uses a connection until it ends, and throws then. */
  serve(client: OpenFlowClient): Promise<never>;
  /** What the switch tells by itself, once it was asked to. */
  heard(event: ConnectionEvent): void;
  /** There is none, and why. */
  down(reason: string): void;
}

/** Connects again and again until `closing`: at once after a restart of the switch, seldom where it stays away. */
export async function keepConnected({
  management,
  bounds,
  closing,
  serve,
  heard,
  down,
}: KeptConnection): Promise<void> {
  const address = parseAddress(management, isWindows);
  const timing = { connectMs: bounds.answerMs, requestMs: bounds.answerMs, idleMs: bounds.idleMs };
  const options = { ...timing, onEvent: heard };
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
    // A switch that takes connections and ends them at once is no better than none.
    if (now - beganAt > bounds.retryMaxMs) goneAt = now;
    // It may be restarting.
    if (now - goneAt <= bounds.retryBriskMs) backoff.reset();
    await pause(backoff.next(), closing);
  }
}

/**
 * Has the switch tell what others change in it: flows by its monitor, groups and meters as the requests that it has
 * carried out. What this connection changes is told in short, eight bytes for each request.
 * @returns why it does not tell of flows; nothing where it does @throws {OpenFlowError} where the connection is lost
 */
export async function watchForeignChanges(client: OpenFlowClient): Promise<string | undefined> {
  try {
    // What it refuses of this costs the rest nothing.
    await client.run([forwardRequests]);
    await client.watchFlows();
    return undefined;
  } catch (caught) {
    if (!(caught instanceof OpenFlowError) || caught.kind === "lost") throw caught;
    return caught.message;
  }
}

/**
 * Whether somebody else may have changed what is ours. What packets have had learned is nobody's; a switch that cannot
 * keep up says `paused` in place of what it leaves out.
 */
export function isForeignChange(event: ConnectionEvent): boolean {
  switch (event.t) {
    case "flow-update":
      return event.event !== "own" && !isLearned(event.cookie);
    case "request-forwarded":
    case "unreadable":
      return true;
    default:
      return false;
  }
}
