import { readFileSync } from "node:fs";
import { limits } from "../limits.ts";
import type { Logger } from "../log.ts";
import { isWindows } from "../os/platform.ts";
import type { RequestMemory } from "./http2/request-memory.ts";
import type { ServedConnection } from "./served-connection.ts";

/** Of the descriptors; the rest is for namespaces, netlink, the database. */
const connectionsShare = 0.5;

/**
 * The connections of one server. A server has no way to let clients wait in the kernel's queue, and without a
 * descriptor left it could serve nobody: where there are too many, those go that have been there longest and have no
 * call at work.
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

  /** To be called now and then. */
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
    // It is told later that its socket has closed.
    this.#connections.delete(connection);
    connection.terminate();
    connection.closed();
  }
}

/** Who has the most, if anybody has any. */
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

/** How many descriptors Linux lets this process have open; `undefined` where there is no telling. */
function descriptorLimit(): number | undefined {
  try {
    const [, most] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return most === undefined ? undefined : Number(most);
  } catch {
    return undefined;
  }
}
