import { randomBytes, timingSafeEqual } from "node:crypto";
import { Refusal } from "../../shared/access/mod.ts";
import type { Exchange } from "../../shared/https/mod.ts";
import { type Admission, pageHeader } from "../../ui/stream/wire.ts";

/** Wrong tokens until none is taken any more: a page has the right one, and guessing 256 bits leads nowhere anyway. */
const maxWrongTokens = 10;
/** Of token, session and key: what nobody guesses. */
const secretBytes = 32;

/**
 * Who may come in: the browser that the command has opened. Its token stands in the address behind `#`, which goes to no
 * server and into no log; it is exchanged once for a cookie that scripts cannot read, and a key that the page's script
 * sends in a header. A page of another site can neither send that cookie nor pass for one of ours. The cookie alone is not
 * enough: browsers send it to every port of this machine, and so to servers of other people who use it. The key stays with
 * the page's origin, of which the port is a part.
 */
export class Entrance {
  readonly #token = randomBytes(secretBytes).toString("base64url");
  readonly #session = randomBytes(secretBytes).toString("base64url");
  readonly #key = randomBytes(secretBytes).toString("base64url");
  readonly #hosts: ReadonlySet<string>;
  readonly #cookie: string;
  #wrong = 0;
  #isUsed = false;

  constructor(port: number) {
    this.#hosts = new Set([`127.0.0.1:${port}`, `[::1]:${port}`, `localhost:${port}`]);
    // Cookies are those of a host whatever the port.
    this.#cookie = `pipette-${port}`;
  }

  /** What stands behind the `#` of the address. */
  get token(): string {
    return this.#token;
  }

  /**
   * That the request is meant for this server: a name that somebody else has pointed at this machine is another host's.
   * @throws {Refusal} 403
   */
  checkHost(exchange: Exchange): void {
    if (!this.#hosts.has(exchange.header("host") ?? ""))
      throw new Refusal(403, "the page is not served under this name");
  }

  /**
   * That the request comes from its own page, or from no page: one of another site says so. To the page itself links may
   * lead from anywhere, because it tells nothing to who has no session.
   * @throws {Refusal} 403
   */
  checkOrigin(exchange: Exchange): void {
    const host = exchange.header("host") ?? "";
    const origin = exchange.header("origin");
    if (origin !== undefined && origin !== `http://${host}`)
      throw new Refusal(403, "the request comes from another page");
    const site = exchange.header("sec-fetch-site");
    if (site !== undefined && site !== "same-origin" && site !== "none")
      throw new Refusal(403, "the request comes from another page");
  }

  /** That no form and no link of another page has sent it: before there is a key. @throws {Refusal} 403 */
  checkScript(exchange: Exchange): void {
    if (exchange.header(pageHeader) !== "1") throw new Refusal(403, `the header "${pageHeader}" is missing`);
  }

  /** @returns the cookie for it, and the page's key @throws {Refusal} 403 for a wrong token, and for the right one the second time */
  admit(token: unknown): { readonly cookie: string; readonly admission: Admission } {
    if (this.#isUsed) throw new Refusal(403, "the address has been used already");
    if (this.#wrong >= maxWrongTokens) throw new Refusal(403, "too many wrong tokens have come");
    if (typeof token !== "string" || !isSame(token, this.#token)) {
      this.#wrong++;
      throw new Refusal(403, "the token is wrong");
    }
    this.#isUsed = true;
    const cookie = `${this.#cookie}=${this.#session}; HttpOnly; SameSite=Strict; Path=/`;
    return { cookie, admission: { key: this.#key } };
  }

  /** That cookie and key are those of this server. @throws {Refusal} 401 */
  checkSession(exchange: Exchange): void {
    const parts = (exchange.header("cookie") ?? "").split(";").map((part) => part.trim());
    const own = parts.find((part) => part.startsWith(`${this.#cookie}=`));
    const hasSession = isSame(own?.slice(this.#cookie.length + 1) ?? "", this.#session);
    const hasKey = isSame(exchange.header(pageHeader) ?? "", this.#key);
    if (!hasSession || !hasKey)
      throw new Refusal(401, 'the page is not open in this browser, wanted the address that "pipette ui" has printed');
  }
}

function isSame(given: string, wanted: string): boolean {
  const [a, b] = [given, wanted].map((text) => new TextEncoder().encode(text)) as [Uint8Array, Uint8Array];
  return a.length === b.length && timingSafeEqual(a, b);
}
