import { EventEmitter } from "node:events";
import { type IncomingMessage, type ServerResponse, validateHeaderValue } from "node:http";
import type { TLSSocket } from "node:tls";
import { Exchange } from "../../../shared/https/mod.ts";

/** Requests as node's HTTP server hands them over, and what is answered, without a connection. */

/** A request as an input has it: whatever is no text is left out. */
export interface Asked {
  readonly method: string;
  readonly target: string;
  /** In the order in which they came; names in any case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** What was answered. */
export interface Answered {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
}

/** Of these a server takes the first; of others it joins all (node's documentation of `message.headers`). */
const single = new Set(["host", "authorization", "content-type", "content-length", "user-agent", "referer"]);
const maxHeaders = 64;

/** What no request can hold, since the server's reader refuses it before. */
const asValue = (text: string): string => text.replace(/[^\t\x20-\x7e\x80-\xff]/g, "?").trim();
const isName = (text: string): boolean => /^:?[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(text);

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function askedIn(value: unknown): Asked {
  const { method, target, headers, body } = isObject(value) ? value : {};
  const pairs = (Array.isArray(headers) ? headers : []).slice(0, maxHeaders).flatMap((pair: unknown) => {
    const [name, text] = Array.isArray(pair) ? pair : [];
    return typeof name === "string" && typeof text === "string" && isName(name) ? [[name, asValue(text)] as const] : [];
  });
  return {
    method: typeof method === "string" && /^[A-Z-]{1,20}$/.test(method) ? method : "GET",
    target: typeof target === "string" ? target.replace(/[^\x21-\x7e]/g, "") : "/",
    headers: pairs,
    body: typeof body === "string" ? body : body === undefined ? "" : JSON.stringify(body),
  };
}

/** What the server says a header is; absent: it did not come. */
export function headerOf({ headers }: Asked, wanted: string): string | undefined {
  const values = headers.flatMap(([name, value]) => (name.toLowerCase() === wanted ? [value] : []));
  if (single.has(wanted)) return values[0];
  return values.length === 0 ? undefined : values.join(wanted === "cookie" ? "; " : ", ");
}

class Answer extends EventEmitter {
  headersSent = false;
  destroyed = false;
  readonly answered: Answered = { status: 0, headers: {}, body: "" };

  writeHead(status: number, headers: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(headers)) validateHeaderValue(name, value);
    this.headersSent = true;
    Object.assign(this.answered, { status, headers });
  }
  write(bytes: Uint8Array): boolean {
    this.answered.body += new TextDecoder().decode(bytes);
    return true;
  }
  end(bytes: Uint8Array = new Uint8Array(0)): void {
    this.write(bytes);
  }
}

/**
 * One request, answered.
 * @param serve answers the exchange, or throws @param from the address that it comes from
 */
export async function exchanged(
  asked: Asked,
  serve: (exchange: Exchange) => Promise<void>,
  from = "127.0.0.1",
): Promise<Answered> {
  const { method, target, headers, body } = asked;
  const names = new Set(headers.map(([name]) => name.toLowerCase()));
  const message = Object.assign(new EventEmitter(), {
    ...{ method, url: target, complete: true, resume: () => undefined },
    headers: Object.fromEntries([...names].map((name) => [name, headerOf(asked, name)])),
    rawHeaders: headers.flat(),
  });
  const answer = new Answer();
  const exchange = new Exchange({
    request: message as unknown as IncomingMessage,
    response: answer as unknown as ServerResponse,
    socket: { authorized: false, remoteAddress: from } as TLSSocket,
    abort: () => undefined,
    known: () => undefined,
  });
  // A body comes when somebody listens for it.
  message.on("newListener", (event: string) => {
    if (event !== "close") return;
    queueMicrotask(() => {
      message.emit("data", new TextEncoder().encode(body));
      message.emit("end");
    });
  });
  try {
    await serve(exchange);
  } finally {
    answer.destroyed = true;
    answer.emit("close");
  }
  return answer.answered;
}
