import { LateSignal } from "../async/late-signal.ts";
import { CniCode, CniError } from "../errors.ts";
import { type HealthCheckResponse, healthService, ServingStatus } from "../proto/daemon-services.ts";
import { GrpcCode, RpcError } from "../rpc/rpc-error.ts";
import { type Rpc, rpc, streamingRpc } from "./handlers.ts";

/** The server's state for gRPC's health checking protocol. All of its services have the same state. */
export class Health {
  /** Full names; the empty one is the server as a whole. */
  readonly #services: ReadonlySet<string>;
  #serving = false;
  #closed = false;
  #change = Promise.withResolvers<void>();

  constructor(services: Iterable<string>) {
    this.#services = new Set(["", ...services]);
  }

  /** Whether calls can be served now; initially `false`. */
  set serving(serving: boolean) {
    this.#serving = serving;
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  /**
   * Tells watchers that nothing is served any more, and ends their calls, which would otherwise keep the server from
   * stopping.
   */
  close(): void {
    this.#closed = true;
    this.serving = false;
  }

  get rpcs(): readonly Rpc[] {
    return [
      rpc(healthService.check, async ({ service }) => {
        const status = this.#statusOf(service);
        if (status !== ServingStatus.serviceUnknown) return { status };
        const names = [...this.#services].map((name) => `"${name}"`).join(", ");
        const text = `Cannot tell the health of "${service}": there is no such service, wanted one of ${names}`;
        throw new RpcError(GrpcCode.notFound, text);
      }),
      streamingRpc(healthService.watch, ({ service }, { signal }) => this.#watch(service, LateSignal.real(signal))),
    ];
  }

  #statusOf(service: string): ServingStatus {
    if (!this.#services.has(service)) return ServingStatus.serviceUnknown;
    return this.#serving ? ServingStatus.serving : ServingStatus.notServing;
  }

  async *#watch(service: string, signal: AbortSignal): AsyncGenerator<HealthCheckResponse, void> {
    const gone = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
    let told: ServingStatus | undefined;
    while (!signal.aborted) {
      const status = this.#statusOf(service);
      const change = this.#change.promise;
      if (status !== told) yield { status };
      told = status;
      if (this.#closed) throw new CniError(CniCode.tryAgainLater, "Cannot watch the health: the server stops");
      await Promise.race([change, gone]);
    }
  }
}
