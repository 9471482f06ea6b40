import { Refusal } from "../../../shared/access/mod.ts";
import type { Exchange } from "../../../shared/https/mod.ts";
import type { Logger } from "../../../shared/log.ts";
import { type Cidr, formatIp } from "../../../shared/net/ip.ts";
import type { Admission } from "../../../ui/stream/wire.ts";
import { type Commands, checkSameOrigin, cookieOf, type Entrance, keyOf, type Visitor } from "../entrance.ts";
import { Attempts } from "./attempts.ts";
import { clientAddress } from "./client-address.ts";
import { Person, type TeamAccess } from "./person.ts";
import type { AgentsSource } from "./person-source.ts";
import { withoutNodes } from "./session.ts";
import { Sessions } from "./sessions.ts";

/** Of a token: one of an account has about a thousand characters. */
const tokenShape = /^[\x21-\x7e]{1,16384}$/;
/** Where `kubectl port-forward` leads to. */
const loopbackHost = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/;
/** A year, as browsers want it of names that they are to ask by TLS alone. */
const strictSeconds = 31_536_000;

export interface LoginParts {
  readonly access: TeamAccess;
  readonly agents: AgentsSource;
  /** In which the agents are. */
  readonly namespace: string;
  /** Names under which the page is reached, in lower case, with their port where that is not 443. */
  readonly hosts: readonly string[];
  /** Whose word counts for where a request comes from. */
  readonly proxies: readonly Cidr[];
  /** What a person may have done. */
  readonly commandsFor: (person: Person, token: string) => Promise<Commands>;
  readonly logger: Logger;
}

/**
 * Lets in whoever brings a token that the API server knows: once, for a session. The browser gets a cookie that scripts
 * cannot read, and a key that the page's script sends in a header; both are wanted, since browsers send cookies to every
 * port of a host.
 */
export class LoginEntrance implements Entrance, Disposable {
  readonly #parts: LoginParts;
  readonly #hosts: ReadonlySet<string>;
  readonly #sessions: Sessions;
  readonly #attempts = new Attempts();

  constructor(parts: LoginParts) {
    this.#parts = parts;
    this.#hosts = new Set(parts.hosts);
    this.#sessions = new Sessions(parts.logger);
  }

  /** Other servers of a loopback address, on other ports, are asked without TLS as before. */
  headers(exchange: Exchange): Readonly<Record<string, string>> {
    const isPublic = this.#hosts.has(exchange.host.toLowerCase());
    return {
      "www-authenticate": "Bearer",
      ...(isPublic ? { "strict-transport-security": `max-age=${strictSeconds}` } : {}),
    };
  }

  /** @throws {Refusal} 403 */
  checkHost(exchange: Exchange): void {
    const host = exchange.host.toLowerCase();
    if (!loopbackHost.test(host) && !this.#hosts.has(host))
      throw new Refusal(403, "the page is not served under this name");
  }

  /** @throws {Refusal} 403 */
  checkOrigin(exchange: Exchange): void {
    checkSameOrigin(exchange, "https");
  }

  /** @throws {Refusal} 403 for a token that nobody knows, or of somebody who may see nothing; 429; 503 */
  async admit(exchange: Exchange, token: unknown): Promise<{ readonly cookie: string; readonly admission: Admission }> {
    const { access, proxies, logger, commandsFor } = this.#parts;
    const from = clientAddress(exchange, proxies);
    this.#attempts.check(from);
    const refused = (why: string, person?: string): Refusal => {
      this.#attempts.failed(from);
      const where = from === undefined ? "" : formatIp(from);
      logger.warn("somebody was not let in to the page", {
        from: where,
        ...(person === undefined ? {} : { person }),
        why,
      });
      return new Refusal(403, why);
    };
    if (typeof token !== "string" || !tokenShape.test(token)) throw refused("this is no token");
    const user = await access.userOfToken(token);
    if (user === undefined) throw refused("the API server does not know this token: it is wrong, or its time is over");
    const person = new Person(user, access);
    const commands = await commandsFor(person, token);
    const lacks = await withoutNodes(person, this.#parts.namespace);
    if (lacks !== undefined && commands.names.length === 0) throw refused(lacks, user.name);
    const { session, key } = this.#sessions.begin({ ...this.#parts, person, token, commands });
    logger.info("somebody has signed in to the page", { person: user.name });
    return { cookie: `${cookieName(exchange)}=${session}; ${cookieRules}`, admission: { key } };
  }

  /** @throws {Refusal} 401 for who is not signed in, 503 where nobody can be asked whether they still are */
  async visitorOf(exchange: Exchange): Promise<Visitor> {
    const session = this.#sessionOf(exchange);
    await session.use();
    // Its account may be gone.
    return this.#sessionOf(exchange);
  }

  async dismiss(exchange: Exchange): Promise<string> {
    this.#sessions.end(this.#sessionOf(exchange), "they have signed out");
    return `${cookieName(exchange)}=; Max-Age=0; ${cookieRules}`;
  }

  [Symbol.dispose](): void {
    this.#sessions[Symbol.dispose]();
  }

  #sessionOf(exchange: Exchange) {
    const session = this.#sessions.find({ session: cookieOf(exchange, cookieName(exchange)), key: keyOf(exchange) });
    if (session === undefined) throw new Refusal(401, "nobody is signed in here");
    return session;
  }
}

const cookieRules = "HttpOnly; Secure; SameSite=Strict; Path=/";

/** Cookies are those of a host whatever the port; by this prefix browsers take it from that host alone, and over TLS. */
const cookieName = (exchange: Exchange): string => `__Host-pipette-${/:(\d{1,5})$/.exec(exchange.host)?.[1] ?? "443"}`;
