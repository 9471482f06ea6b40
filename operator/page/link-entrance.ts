import { randomBytes } from "node:crypto";
import { Refusal } from "../../shared/access/mod.ts";
import type { Exchange } from "../../shared/https/mod.ts";
import type { Admission } from "../../ui/stream/wire.ts";
import { checkSameOrigin, cookieOf, type Entrance, isSameText, keyOf, type Visitor } from "./entrance.ts";

/** Wrong tokens until none is taken any more: a page has the right one, and guessing 256 bits leads nowhere anyway. */
const maxWrongTokens = 10;
/** Of token, session and key: what nobody guesses. */
const secretBytes = 32;

/**
 * Lets in the browser that the command has opened. Its token stands in the address behind `#`, which goes to no server
 * and into no log; it is exchanged once for a cookie that scripts cannot read, and a key that the page's script sends in a
 * header. A page of another site can neither send that cookie nor pass for one of ours. The cookie alone is not enough:
 * browsers send it to every port of this machine, and so to servers of other people who use it. The key stays with the
 * page's origin, of which the port is a part.
 */
export class LinkEntrance implements Entrance {
  readonly #token = randomBytes(secretBytes).toString("base64url");
  readonly #session = randomBytes(secretBytes).toString("base64url");
  readonly #key = randomBytes(secretBytes).toString("base64url");
  readonly #hosts: ReadonlySet<string>;
  readonly #cookie: string;
  readonly #visitor: Visitor;
  #wrong = 0;
  #isUsed = false;

  /** @param visitor whoever has the address */
  constructor(port: number, visitor: Visitor) {
    this.#hosts = new Set([`127.0.0.1:${port}`, `[::1]:${port}`, `localhost:${port}`]);
    // Cookies are those of a host whatever the port.
    this.#cookie = `pipette-${port}`;
    this.#visitor = visitor;
  }

  /** What stands behind the `#` of the address. */
  get token(): string {
    return this.#token;
  }

  headers(): Readonly<Record<string, string>> {
    return {};
  }

  /** @throws {Refusal} 403 */
  checkHost(exchange: Exchange): void {
    if (!this.#hosts.has(exchange.host)) throw new Refusal(403, "the page is not served under this name");
  }

  /** @throws {Refusal} 403 */
  checkOrigin(exchange: Exchange): void {
    checkSameOrigin(exchange, "http");
  }

  /** @throws {Refusal} 403 for a wrong token, and for the right one the second time */
  async admit(_: Exchange, token: unknown): Promise<{ readonly cookie: string; readonly admission: Admission }> {
    if (this.#isUsed) throw new Refusal(403, "the address has been used already");
    if (this.#wrong >= maxWrongTokens) throw new Refusal(403, "too many wrong tokens have come");
    if (typeof token !== "string" || !isSameText(token, this.#token)) {
      this.#wrong++;
      throw new Refusal(403, "the token is wrong");
    }
    this.#isUsed = true;
    const cookie = `${this.#cookie}=${this.#session}; HttpOnly; SameSite=Strict; Path=/`;
    return { cookie, admission: { key: this.#key } };
  }

  /** @throws {Refusal} 401 unless cookie and key are those of this server */
  async visitorOf(exchange: Exchange): Promise<Visitor> {
    const hasSession = isSameText(cookieOf(exchange, this.#cookie), this.#session);
    if (!hasSession || !isSameText(keyOf(exchange), this.#key))
      throw new Refusal(401, 'the page is not open in this browser, wanted the address that "pipette ui" has printed');
    return this.#visitor;
  }
}
