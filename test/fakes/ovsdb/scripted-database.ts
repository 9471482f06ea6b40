import { JsonSplitter } from "../../../agent/protocols/ovsdb/json-splitter.ts";
import type { ByteStream, OpenStream, StreamEvents } from "../../../agent/protocols/ovsdb/transport.ts";

/** For tests: a database's end of connections that are none, in which everything goes right or wrong as asked. */

export interface Asked {
  readonly method: string;
  readonly params: readonly unknown[];
  readonly id: unknown;
}

/** What the server does with a message; what is returned is sent as the result, `undefined` sends nothing. */
export type Handler = (asked: Asked, connection: ScriptedConnection) => unknown;

/** An answer with an error, to be returned by a handler. */
export class ErrorAnswer {
  readonly error: unknown;
  constructor(error: unknown) {
    this.error = error;
  }
}

/** One connection as the server sees it. */
export class ScriptedConnection implements ByteStream {
  readonly asked: Asked[] = [];
  closed = false;
  /** How much the system takes of a write. */
  takes: number = Number.POSITIVE_INFINITY;
  readonly #splitter = new JsonSplitter();
  readonly #events: StreamEvents;
  readonly #database: ScriptedDatabase;

  constructor(database: ScriptedDatabase, events: StreamEvents) {
    this.#database = database;
    this.#events = events;
  }

  write(bytes: Uint8Array): number {
    const taken = bytes.slice(0, this.takes);
    this.#splitter.push(taken);
    for (let piece = this.#splitter.next(); piece !== undefined; piece = this.#splitter.next()) {
      if (piece.t === "fault") throw new Error(`the client sends what is no JSON: ${piece.is}`);
      const asked = JSON.parse(piece.text) as Asked;
      this.asked.push(asked);
      queueMicrotask(() => this.#handle(asked));
    }
    return taken.length;
  }

  close(): void {
    this.closed = true;
  }

  drain(): void {
    this.#events.drain();
  }

  /** Sends bytes as they are. */
  sendBytes(bytes: Uint8Array): void {
    const { pieceBytes } = this.#database;
    for (let at = 0; at < bytes.length && !this.closed; at += pieceBytes) {
      // A copy that is spoilt afterwards: what the client keeps must be its own.
      const piece = bytes.slice(at, at + pieceBytes);
      this.#events.data(piece);
      piece.fill(0xee);
    }
  }

  send(message: unknown): void {
    this.sendBytes(new TextEncoder().encode(typeof message === "string" ? message : JSON.stringify(message)));
  }

  /** Ends the connection from the server's side. */
  end(reason = "the server has closed the connection"): void {
    if (this.closed) return;
    this.closed = true;
    this.#events.closed(reason);
  }

  #handle(asked: Asked): void {
    if (this.closed) return;
    const answer = this.#database.handler(asked, this);
    if (answer === undefined || asked.id === null) return;
    const isError = answer instanceof ErrorAnswer;
    this.send({ id: asked.id, result: isError ? null : answer, error: isError ? answer.error : null });
  }
}

/** A server that answers monitors with the given rows, and everything else as asked. */
export class ScriptedDatabase {
  readonly connections: ScriptedConnection[] = [];
  /** In pieces of how many bytes the client gets what is sent. */
  pieceBytes = Number.MAX_SAFE_INTEGER;
  /** Why nobody can connect. */
  refusal: string | undefined;
  handler: Handler;

  constructor(handler: Handler = usual({})) {
    this.handler = handler;
  }

  readonly open: OpenStream = async (_, events) => {
    if (this.refusal !== undefined) throw new Error(this.refusal);
    const connection = new ScriptedConnection(this, events);
    this.connections.push(connection);
    return connection;
  };

  /** The connection that was made last. */
  get last(): ScriptedConnection {
    const last = this.connections.at(-1);
    if (last === undefined) throw new Error("nobody has connected");
    return last;
  }
}

/** Answers `monitor_cond` with these `<table-updates2>`, `echo` and a lone comment as it should be, and the rest by `more`. */
export function usual(state: unknown, more: Handler = () => undefined): Handler {
  return (asked, connection) => {
    if (asked.method === "monitor_cond") return state;
    if (asked.method === "echo") return asked.params;
    if (asked.method === "transact" && isComment(asked.params)) return [{}];
    return more(asked, connection);
  };
}

const isComment = ([, first, ...others]: readonly unknown[]): boolean =>
  others.length === 0 && (first as { readonly op?: unknown }).op === "comment";
