import { Refusal } from "../../shared/access/mod.ts";
import { type Exchange, HttpsServer, refuse } from "../../shared/https/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import { version } from "../../shared/version.ts";
import type { About } from "../../ui/stream/wire.ts";
import type { DocumentSource } from "../document-source.ts";
import type { PageFile } from "./bundle-page.ts";
import { Entrance } from "./entrance.ts";
import { streamEvents } from "./event-stream.ts";
import { Hub } from "./hub.ts";
import type { PageCommands } from "./page-commands.ts";
import { maxWishes, parseWish, type Wish } from "./topics.ts";

/** The browsers of one person: six connections each, and others of this machine that knock. */
const bounds = { maxConnections: 64, strangerMs: 15_000 };
/** What is pasted, as JSON with each character escaped. */
const maxBodyBytes = 8 * 1024 * 1024;
/** Attempts to find a port that is free on both loopback addresses. */
const portTries = 5;

/** Nothing from elsewhere, nothing inline, in no frame. */
const usualHeaders: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

export interface PageParts {
  readonly source: DocumentSource;
  readonly commands: PageCommands;
  readonly files: readonly PageFile[];
  readonly logger: Logger;
  /** 0: any that is free. */
  readonly port: number;
}

/** The page's server, which only this machine can reach. */
export class PageServer implements AsyncDisposable {
  readonly #parts: PageParts;
  readonly #files: ReadonlyMap<string, PageFile>;
  readonly #hub: Hub;
  readonly #servers: HttpsServer[] = [];
  #entrance: Entrance | undefined;
  #url = "";

  private constructor(parts: PageParts) {
    this.#parts = parts;
    this.#files = new Map(parts.files.map((file) => [file.path, file]));
    this.#hub = new Hub(parts.source, parts.logger);
  }

  /** On the loopback addresses of both families; without one of them, on the other. @throws {Error} on neither */
  static async start(parts: PageParts): Promise<PageServer> {
    const server = new PageServer(parts);
    try {
      await server.#listen();
      return server;
    } catch (caught) {
      await server[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** With the token: for one browser, once. */
  get url(): string {
    return `${this.#url}/#token=${this.#entrance?.token ?? ""}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#hub[Symbol.dispose]();
    await Promise.all(this.#servers.map((server) => server[Symbol.asyncDispose]()));
  }

  async #listen(): Promise<void> {
    const open = (host: string, port: number): Promise<HttpsServer> =>
      HttpsServer.listen({ host, port }, undefined, (exchange) => void this.#serve(exchange), bounds);
    for (let tries = 1; ; tries++) {
      const [first, firstFault] = await tried(open("127.0.0.1", this.#parts.port));
      const port = first?.port ?? this.#parts.port;
      const [second, secondFault] = await tried(open("::1", port));
      // Somebody else has the port on the second address: the browser might get there by the name "localhost".
      const isTaken = first !== undefined && secondFault?.code === "EADDRINUSE";
      if (isTaken && this.#parts.port === 0 && tries < portTries) {
        await first[Symbol.asyncDispose]();
        continue;
      }
      for (const each of [first, second]) if (each !== undefined) this.#servers.push(each);
      const one = first ?? second;
      if (one === undefined) throw firstFault;
      this.#entrance = new Entrance(one.port);
      this.#url = `http://${first === undefined ? "[::1]" : "127.0.0.1"}:${one.port}`;
      return;
    }
  }

  async #serve(exchange: Exchange): Promise<void> {
    try {
      const entrance = this.#entrance;
      if (entrance === undefined) throw new Refusal(503, "the server has not begun yet", 1);
      entrance.checkHost(exchange);
      const { method, path } = exchange;
      if (method !== "GET" && method !== "POST") throw new Refusal(405, "this can only be read");
      const file = method === "GET" ? this.#files.get(path) : undefined;
      if (file !== undefined) return answerFile(exchange, file);
      entrance.checkOrigin(exchange);
      if (`${method} ${path}` === "POST /api/v1/session") await this.#admit(exchange, entrance);
      else {
        entrance.checkSession(exchange);
        exchange.authenticated();
        await this.#answer(exchange);
      }
    } catch (caught) {
      refuse(exchange, caught, this.#parts.logger, usualHeaders);
    }
  }

  async #admit(exchange: Exchange, entrance: Entrance): Promise<void> {
    entrance.checkScript(exchange);
    const body = await jsonBody(exchange);
    const token = typeof body === "object" && body !== null && "token" in body ? body.token : undefined;
    const { cookie, admission } = entrance.admit(token);
    answerJson(exchange, admission, { "set-cookie": cookie });
  }

  async #answer(exchange: Exchange): Promise<void> {
    const { source, commands } = this.#parts;
    switch (`${exchange.method} ${exchange.path}`) {
      case "GET /api/v1/about": {
        const about: About = { title: source.title, version, isLive: source.isLive, commands: commands.names };
        return answerJson(exchange, about);
      }
      case "GET /api/v1/events": {
        const [wishes, kept] = ["topics", "kept"].map((key) => wishesOf(exchange.query.get(key) ?? ""));
        const headers = { ...usualHeaders, "cache-control": "no-store" };
        return streamEvents(exchange, this.#hub, { wishes: wishes ?? [], kept: kept ?? [] }, headers);
      }
      case "POST /api/v1/commands":
        return answerJson(exchange, await commands.run(await jsonBody(exchange)));
      default:
        throw new Refusal(404, "there is nothing under this address");
    }
  }
}

async function tried<T>(work: Promise<T>): Promise<[T, undefined] | [undefined, Error & { code?: string }]> {
  try {
    return [await work, undefined];
  } catch (caught) {
    return [undefined, caught instanceof Error ? caught : new Error(reasonOf(caught))];
  }
}

/** @throws {Refusal} */
function wishesOf(text: string): readonly Wish[] {
  const parts = text.split(",").filter((part) => part !== "");
  if (parts.length > maxWishes) throw new Refusal(400, `there are ${parts.length} topics, wanted at most ${maxWishes}`);
  return parts.map((part) => {
    const wish = parseWish(part);
    if (wish === undefined) throw new Refusal(400, "a topic is none, wanted cluster, NODE/KIND or */KIND");
    return wish;
  });
}

/** @throws {Refusal} */
async function jsonBody(exchange: Exchange): Promise<unknown> {
  if (!(exchange.header("content-type") ?? "").startsWith("application/json"))
    throw new Refusal(415, "the body is of another type, wanted application/json");
  const bytes = await exchange.body(maxBodyBytes);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Refusal(400, "the body is no JSON");
  }
}

const answerJson = (exchange: Exchange, value: object, more: Record<string, string> = {}): void =>
  exchange.answer(200, "application/json", `${JSON.stringify(value)}\n`, {
    ...usualHeaders,
    "cache-control": "no-store",
    ...more,
  });

function answerFile(exchange: Exchange, { path, contentType, gzip }: PageFile): void {
  const takesGzip = (exchange.header("accept-encoding") ?? "").includes("gzip");
  const body = takesGzip ? gzip : Bun.gunzipSync(new Uint8Array(gzip));
  exchange.answer(200, contentType, body, {
    ...usualHeaders,
    ...(takesGzip ? { "content-encoding": "gzip" } : {}),
    vary: "accept-encoding",
    // The name changes with the content.
    "cache-control": path === "/" ? "no-store" : "private, max-age=31536000, immutable",
  });
}
