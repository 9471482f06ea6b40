import { readFileSync } from "node:fs";
import { limits } from "../limits.ts";
import type { Logger } from "../log.ts";
import { isWindows } from "../os/platform.ts";
import type { RequestMemory } from "./http2/request-memory.ts";
import type { ServedConnection } from "./served-connection.ts";

/** The share of all descriptors for connections; the rest is for namespaces, netlink and the database. */
const connectionsShare = 0.5;

/**
 * The connections of one server. A server cannot leave clients in the kernel's queue, and without a free descriptor it
 * could serve nobody. So if there are too many connections, the longest idle ones are closed.
 */
export class ConnectionRegistry implements RequestMemory {
  heldBytes = 0;
  readonly #connections = new Set<ServedConnection>();
  readonly #most: number;
  readonly #logger: Logger;
  #ended = 0;

  constructor(logger: Logger, most: number = maxConnections()) {
    this.#logger = logger;
    this.#most = most;
  }

  get size(): number {
    return this.#connections.size;
  }

  enter(connection: ServedConnection): void {
    if (this.#connections.size >= this.#most) this.#end(this.#longestIdle());
    this.#connections.add(connection);
  }

  leave(connection: ServedConnection): void {
    this.#connections.delete(connection);
  }

  makeRoom(): void {
    const all = [...this.#connections];
    const idle = most(all, (other) => (other.isHandling ? 0 : other.heldBytes));
    if (idle !== undefined) this.#end(idle);
    else most(all, (other) => other.halfBytes)?.refuseHalf();
  }

  /** To be called periodically. */
  sweep(): void {
    const nowMs = performance.now();
    for (const connection of this.#connections) connection.sweep(nowMs);
    if (this.#ended === 0) return;
    this.#logger.warn("connections were ended to make room for others", { ended: this.#ended, most: this.#most });
    this.#ended = 0;
  }

  [Symbol.iterator](): Iterator<ServedConnection> {
    return this.#connections.values();
  }

  #longestIdle(): ServedConnection | undefined {
    for (const connection of this.#connections) if (!connection.isHandling) return connection;
    return undefined;
  }

  #end(connection: ServedConnection | undefined): void {
    if (connection === undefined) return;
    this.#ended++;
    // Removed now, because the notice that the socket has closed comes later.
    this.#connections.delete(connection);
    connection.terminate();
    connection.closed();
  }
}

/** The connection with the most, if any has some. */
function most(
  all: readonly ServedConnection[],
  bytesOf: (one: ServedConnection) => number,
): ServedConnection | undefined {
  let [found, maxBytes]: [ServedConnection | undefined, number] = [undefined, 0];
  for (const one of all) {
    const bytes = bytesOf(one);
    if (bytes > maxBytes) [found, maxBytes] = [one, bytes];
  }
  return found;
}

function maxConnections(): number {
  const descriptors = isWindows ? undefined : descriptorLimit();
  return descriptors === undefined
    ? limits.connections
    : Math.min(limits.connections, Math.floor(descriptors * connectionsShare));
}

/** How many descriptors Linux allows this process; `undefined` if unknown. */
function descriptorLimit(): number | undefined {
  try {
    const [, most] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return most === undefined ? undefined : Number(most);
  } catch {
    return undefined;
  }
}
