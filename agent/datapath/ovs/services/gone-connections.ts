import type { Logger } from "../../../../shared/log.ts";
import { isWindows } from "../../../../shared/platform.ts";
import { flushConnections, OpenFlowClient, type OpenFlowError, parseAddress } from "../../../openflow/mod.ts";
import { zones } from "../pipeline/registers.ts";
import type { GoneEndpoint } from "./service-changes.ts";

export interface GoneConnectionsOptions {
  /** Where the bridge listens, as `parseAddress` of `agent/openflow` takes it. */
  readonly management: string;
  readonly logger: Logger;
  readonly settleMs?: number;
}

/** What packets go by lags behind the flows: by this much at the most on a switch that has time for either. */
const defaultSettleMs = 1_000;
/** Where the switch cannot be reached. */
const retryMs = 10_000;
/** A switch that is away for so many changes has lost its connections, or its clients have given up. */
const mostGone = 10_000;

/**
 * Has the switch forget connections to endpoints that have gone from a service. Who sends datagrams from one port for
 * ever, as some clients of DNS do, would reach nobody for as long: nothing else ends such a connection.
 */
export class GoneConnections implements AsyncDisposable {
  readonly #options: GoneConnectionsOptions;
  #gone: GoneEndpoint[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #working: Promise<void> | undefined;
  #isEnded = false;

  constructor(options: GoneConnectionsOptions) {
    this.#options = options;
  }

  /** Their flows have gone already. */
  add(gone: readonly GoneEndpoint[]): void {
    if (gone.length === 0) return;
    this.#gone = [...this.#gone, ...gone].slice(-mostGone);
    this.#schedule(this.#options.settleMs ?? defaultSettleMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnded = true;
    clearTimeout(this.#timer);
    await this.#working;
  }

  #schedule(inMs: number): void {
    if (this.#isEnded) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#working = (this.#working ?? Promise.resolve()).then(() => this.#forget());
    }, inMs);
    this.#timer.unref();
  }

  async #forget(): Promise<void> {
    const gone = this.#gone.splice(0);
    if (gone.length === 0) return;
    const { management, logger } = this.#options;
    try {
      using client = await OpenFlowClient.connect(parseAddress(management, isWindows));
      const [refusal] = await client.run(gone.map(requestOf));
      if (refusal !== undefined) logger.warn(`${refusal.message}, wanted Open vSwitch 3.1 or newer`);
    } catch (caught) {
      logger.warn((caught as OpenFlowError).message, { endpoints: gone.length });
      this.#gone = [...gone, ...this.#gone].slice(-mostGone);
      this.#schedule(retryMs);
    }
  }
}

const requestOf = ({ service, endpoint }: GoneEndpoint) =>
  flushConnections({
    protocol: service.protocol,
    zone: zones[service.clusterIp.family].main,
    original: { destination: service.clusterIp, destinationPort: service.port },
    reply: { source: endpoint.ip, sourcePort: endpoint.port },
  });
