import { type Endpoint, EtcdConnection, errorOf } from "./connection.ts";
import { EtcdError } from "./etcd-error.ts";
import { etcdLimits } from "./etcd-limits.ts";
import type { WatchCreateRequest, WatchResponse } from "./messages.ts";

export interface WatchOptions {
  readonly endpoint: Endpoint;
  readonly request: WatchCreateRequest;
  /**
   * Called with every response; an answer to a progress request has no events. An error that it throws ends the watch.
   */
  readonly onResponse: (response: WatchResponse) => void;
  /** Both end the watch. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/**
 * One watch at one member, on a connection of its own, until it ends or is ended.
 *
 * A member that is cut off may be silent for ever, but so is a watch without changes. So a silent watch gets a progress
 * request, which etcd answers at once.
 * @throws {EtcdError} why it ended
 */
export async function watch({ endpoint, request, onResponse, signal, timeoutMs }: WatchOptions): Promise<void> {
  if (signal.aborted) return;
  using connection = new EtcdConnection(endpoint);
  const stream = connection.openWatch();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stop = (): void => resolve();
  signal.addEventListener("abort", stop);
  const timeout = setTimeout(stop, timeoutMs);
  let asked = false;
  let heard = false;
  const silence = setInterval(() => {
    if (!heard && asked) {
      const silent = `the member ${endpoint.url} has said nothing for ${2 * etcdLimits.watchSilenceMs} ms`;
      reject(new EtcdError("uncertain", silent));
    } else if (!heard) stream.write({ progress: {} });
    asked = !heard;
    heard = false;
  }, etcdLimits.watchSilenceMs);
  stream.on("error", (caught) => reject(errorOf(caught)));
  stream.on("end", () => reject(new EtcdError("uncertain", `the member ${endpoint.url} has ended the watch`)));
  stream.on("data", (response: WatchResponse) => {
    heard = true;
    try {
      onResponse(response);
    } catch (caught) {
      reject(caught);
    }
  });
  stream.write({ create: request });
  try {
    await promise;
  } finally {
    clearInterval(silence);
    clearTimeout(timeout);
    signal.removeEventListener("abort", stop);
    stream.cancel();
  }
}
