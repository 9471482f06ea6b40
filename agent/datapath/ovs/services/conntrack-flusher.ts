import type { Logger } from "../../../../shared/log.ts";
import { isWindows } from "../../../../shared/os/platform.ts";
import { flushConnections, OpenFlowClient, type OpenFlowError, parseAddress } from "../../../protocols/openflow/mod.ts";
import { zones } from "../pipeline/registers.ts";
import type { StaleConnections } from "./served-port.ts";

export interface ConntrackFlusherOptions {
  /** Where the bridge listens, as `parseAddress` of `agent/protocols/openflow` takes it. */
  readonly management: string;
  readonly logger: Logger;
  readonly flowLagMs?: number;
}

/** The longest time by which the switch's caches lag behind its flows, if it is not overloaded. */
const defaultFlowLagMs = 1_000;
/** Where the switch cannot be reached. */
const retryMs = 10_000;
/** The number of changes to remember: a switch that is away for so many has lost its connections anyway. */
const maxGone = 10_000;

/**
 * Has the switch forget connections to endpoints that have gone from a service, and those that were refused while it
 * had none. Who sends datagrams from one port for
 * ever, as some clients of DNS do, would reach nobody for as long: nothing else ends such a connection.
 */
export class ConntrackFlusher implements AsyncDisposable {
  readonly #options: ConntrackFlusherOptions;
  /** Each with the time after which no more packets are sent to it. */
  #gone: (StaleConnections & { readonly from: number })[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #working: Promise<void> | undefined;
  #isEnded = false;

  constructor(options: ConntrackFlusherOptions) {
    this.#options = options;
  }

  /** To be called once their flows are removed. */
  add(gone: readonly StaleConnections[]): void {
    if (gone.length === 0) return;
    const flowLagMs = this.#options.flowLagMs ?? defaultFlowLagMs;
    const from = performance.now() + flowLagMs;
    this.#gone = [...this.#gone, ...gone.map((each) => ({ ...each, from }))].slice(-maxGone);
    // A scheduled flush is not postponed, since endpoints may be removed continuously.
    if (this.#timer === undefined) this.#schedule(flowLagMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    await this.#working;
  }

  #schedule(inMs: number): void {
    if (this.#isEnded) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#working = (this.#working ?? Promise.resolve()).then(() => this.#forget());
    }, inMs);
    this.#timer.unref();
  }

  async #forget(): Promise<void> {
    const now = performance.now();
    const { true: due = [], false: later = [] } = Object.groupBy(this.#gone, ({ from }) => `${from <= now}`);
    this.#gone = later;
    const isReached = due.length === 0 || (await this.#ask(due));
    if (!isReached) this.#gone = [...due, ...this.#gone].slice(-maxGone);
    const [first] = this.#gone;
    if (first === undefined || this.#timer !== undefined) return;
    this.#schedule(isReached ? first.from - now : retryMs);
  }

  /** `false` where the switch cannot be reached. */
  async #ask(gone: readonly StaleConnections[]): Promise<boolean> {
    const { management, logger } = this.#options;
    try {
      using client = await OpenFlowClient.connect(parseAddress(management, isWindows));
      const [refusal] = await client.run(gone.map(requestOf));
      if (refusal !== undefined) logger.warn(`${refusal.message}, wanted Open vSwitch 3.1 or newer`);
      return true;
    } catch (caught) {
      logger.warn((caught as OpenFlowError).message, { changes: gone.length });
      return false;
    }
  }
}

const requestOf = ({ family, ip, port, endpoint }: StaleConnections) =>
  flushConnections({
    protocol: "udp",
    zone: zones[family].main,
    original: { ...(ip === undefined ? {} : { destination: ip }), destinationPort: port },
    ...(endpoint === undefined ? {} : { reply: { source: endpoint.ip, sourcePort: endpoint.port } }),
  });
