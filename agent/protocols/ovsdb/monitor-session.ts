import type { Connection, Outcome } from "./connection.ts";
import { type Known, readUpdates, type UpdateForm } from "./table-updates.ts";
import { serverError } from "./transaction-answer.ts";
import { MalformedValue } from "./values.ts";
import type { Monitored, RowChange } from "./view.ts";

export interface MonitorEvents {
  /** The whole state, once, before any change. It may throw `MalformedValue`. */
  state(rows: readonly RowChange[]): void;
  /** One transaction's changes. It may throw `MalformedValue`. */
  changes(changes: readonly RowChange[]): void;
  known: Known;
}

/**
 * The monitor of one connection (RFC 7047, sections 4.1.5 and 4.1.6): by `monitor_cond` (ovsdb-server(7), section
 * 4.1.12), whose updates say differences only, or where the server has none by `monitor`.
 */
export class MonitorSession {
  readonly #database: string;
  readonly #monitored: Monitored;
  readonly #events: MonitorEvents;
  #form: UpdateForm | undefined;

  constructor(database: string, monitored: Monitored, events: MonitorEvents) {
    this.#database = database;
    this.#monitored = monitored;
    this.#events = events;
  }

  /** Begins. What goes wrong ends the connection, with the reason. */
  start(connection: Connection, timeoutMs: number): void {
    this.#ask(connection, "monitor_cond", "update2", timeoutMs, (outcome) => {
      const isUnknown = outcome.t === "error" && serverError(outcome.error).code === "unknown method";
      if (isUnknown) this.#ask(connection, "monitor", "update", timeoutMs, () => undefined);
      return isUnknown;
    });
  }

  /** A notification of the server. @throws {MalformedValue} */
  notify(method: string, params: readonly unknown[]): void {
    if (method === "monitor_canceled") throw new MalformedValue("the database is not served any more");
    // A server may tell what later versions know; what was not asked for is nothing to us.
    if (method !== "update" && method !== "update2") return;
    if (method !== this.#form || params.length !== 2 || params[0] !== monitorId)
      throw new MalformedValue("it belongs to no monitor of ours");
    const { known, changes } = this.#events;
    const read = readUpdates(method, this.#monitored, params[1], known);
    if (read.length > 0) changes(read);
  }

  #ask(
    connection: Connection,
    method: string,
    form: UpdateForm,
    timeoutMs: number,
    otherwise: (outcome: Outcome) => boolean | undefined,
  ): void {
    const requests = Object.entries(this.#monitored).map(([table, columns]) => [table, [{ columns }]]);
    const params = [this.#database, monitorId, Object.fromEntries(requests)];
    connection.request(method, params, timeoutMs, (outcome) => {
      if (outcome.t === "result") {
        try {
          this.#events.state(readUpdates(form, this.#monitored, outcome.result, () => undefined));
          this.#form = form;
        } catch (caught) {
          if (!(caught instanceof MalformedValue)) throw caught;
          connection.close(`the state of the database cannot be read: ${caught.message}`);
        }
      } else if (otherwise(outcome) !== true) connection.close(why(method, outcome, timeoutMs));
    });
  }
}

/** One for a connection: the server wants them different. */
const monitorId = "pipette";

function why(method: string, outcome: Exclude<Outcome, { t: "result" }>, timeoutMs: number): string {
  if (outcome.t === "error") return `the server answers ${serverError(outcome.error).text} to ${method}`;
  if (outcome.t === "gone" || outcome.t === "unsent") return outcome.reason;
  return `the server has not answered ${method} within ${timeoutMs} ms`;
}
