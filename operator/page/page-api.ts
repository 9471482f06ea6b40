import { Refusal } from "../../shared/access/mod.ts";
import { type Exchange, refuse } from "../../shared/https/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { version } from "../../shared/version.ts";
import type { About } from "../../ui/stream/wire.ts";
import type { PageFile } from "./bundle-page.ts";
import { checkScript, type Entrance, type Visitor } from "./entrance.ts";
import { streamEvents } from "./event-stream.ts";
import { maxWishes, parseWish, type Wish } from "./topics.ts";

/** What is pasted, as JSON with each character escaped. */
const maxBodyBytes = 8 * 1024 * 1024;
/** Of who has not come in yet: a token. */
const maxTokenBodyBytes = 32 * 1024;

/** Of one person: a browser with every tab that somebody has. */
const maxStreams = 32;

/** Nothing from elsewhere, nothing inline, in no frame. */
const usualHeaders: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
};

/** The page's files, and what it asks for, for whom its entrance lets in. */
export class PageApi {
  readonly #files: ReadonlyMap<string, PageFile>;
  readonly #entrance: Entrance;
  readonly #logger: Logger;

  constructor(files: readonly PageFile[], entrance: Entrance, logger: Logger) {
    this.#files = new Map(files.map((file) => [file.path, file]));
    this.#entrance = entrance;
    this.#logger = logger;
  }

  async serve(exchange: Exchange): Promise<void> {
    const entrance = this.#entrance;
    const headers = { ...usualHeaders, ...entrance.headers(exchange) };
    try {
      entrance.checkHost(exchange);
      const { method, path } = exchange;
      if (method !== "GET" && method !== "POST") throw new Refusal(405, "this can only be read");
      const file = method === "GET" ? this.#files.get(path) : undefined;
      if (file !== undefined) return answerFile(exchange, file, headers);
      entrance.checkOrigin(exchange);
      if (`${method} ${path}` === "POST /api/v1/session") await this.#admit(exchange, headers);
      else {
        const visitor = await entrance.visitorOf(exchange);
        exchange.authenticated();
        await this.#answer(exchange, visitor, headers);
      }
    } catch (caught) {
      refuse(exchange, caught, this.#logger, headers);
    }
  }

  async #admit(exchange: Exchange, headers: Record<string, string>): Promise<void> {
    checkScript(exchange);
    const body = await jsonBody(exchange, maxTokenBodyBytes);
    const token = typeof body === "object" && body !== null && "token" in body ? body.token : undefined;
    const { cookie, admission } = await this.#entrance.admit(exchange, token);
    answerJson(exchange, admission, { ...headers, "set-cookie": cookie });
  }

  async #answer(exchange: Exchange, visitor: Visitor, headers: Record<string, string>): Promise<void> {
    const { hub, commands } = visitor;
    switch (`${exchange.method} ${exchange.path}`) {
      case "GET /api/v1/about": {
        const about: About = { ...(await visitor.about()), version, commands: commands.names };
        return answerJson(exchange, about, headers);
      }
      case "GET /api/v1/events": {
        const [wishes, kept] = ["topics", "kept"].map((key) => wishesOf(exchange.query.get(key) ?? ""));
        if (hub.followers >= maxStreams) throw new Refusal(429, "the page is open too many times", 10);
        const follower = { wishes: wishes ?? [], kept: kept ?? [] };
        return streamEvents(exchange, hub, follower, { ...headers, "cache-control": "no-store" }, visitor.ended);
      }
      case "POST /api/v1/commands":
        return answerJson(exchange, await commands.run(await jsonBody(exchange, maxBodyBytes)), headers);
      case "POST /api/v1/leave": {
        const cookie = await this.#entrance.dismiss?.(exchange);
        if (cookie !== undefined) return answerJson(exchange, {}, { ...headers, "set-cookie": cookie });
      }
    }
    throw new Refusal(404, "there is nothing under this address");
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
async function jsonBody(exchange: Exchange, maxBytes: number): Promise<unknown> {
  if (!(exchange.header("content-type") ?? "").startsWith("application/json"))
    throw new Refusal(415, "the body is of another type, wanted application/json");
  const bytes = await exchange.body(maxBytes);
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Refusal(400, "the body is no JSON");
  }
}

const answerJson = (exchange: Exchange, value: object, headers: Record<string, string>): void =>
  exchange.answer(200, "application/json", `${JSON.stringify(value)}\n`, { "cache-control": "no-store", ...headers });

function answerFile(
  exchange: Exchange,
  { path, contentType, gzip }: PageFile,
  headers: Readonly<Record<string, string>>,
): void {
  const takesGzip = (exchange.header("accept-encoding") ?? "").includes("gzip");
  const body = takesGzip ? gzip : Bun.gunzipSync(new Uint8Array(gzip));
  exchange.answer(200, contentType, body, {
    ...headers,
    ...(takesGzip ? { "content-encoding": "gzip" } : {}),
    vary: "accept-encoding",
    // The name changes with the content.
    "cache-control": path === "/" ? "no-store" : "private, max-age=31536000, immutable",
  });
}
