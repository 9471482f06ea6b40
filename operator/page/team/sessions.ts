import { randomBytes } from "node:crypto";
import { Refusal } from "../../../shared/access/mod.ts";
import type { Logger } from "../../../shared/log.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { isSameText } from "../entrance.ts";
import { Session, type SessionParts } from "./session.ts";

/** Each has a hub with what its person sees; a team is smaller. */
const maxSessions = 64;
/** Browsers of one person: with another one the oldest ends. */
const maxOfPerson = 4;
/** Each time the API server is asked whether the accounts are there still; its answers hold for ten seconds. */
const reviewMs = 15_000;
/** Of session and key: what nobody guesses. */
const secretBytes = 32;

/** What the browser is given. */
export interface Secrets {
  /** In its cookie. */
  readonly session: string;
  /** For the page's script. */
  readonly key: string;
}

/** Who is signed in at present, by what only their browsers know: here is a hash of each. */
export class Sessions implements Disposable {
  readonly #logger: Logger;
  readonly #open = new Map<string, { readonly key: string; readonly session: Session }>();
  readonly #timer: ReturnType<typeof setInterval>;

  constructor(logger: Logger) {
    this.#logger = logger;
    this.#timer = setInterval(() => void this.#review(), reviewMs);
  }

  get size(): number {
    return this.#open.size;
  }

  /** Always a new one, whatever the browser had. @throws {Refusal} 503 where too many are there */
  begin(parts: SessionParts): Secrets {
    this.#sweep();
    const own = [...this.#open].filter(([, { session }]) => session.isOf(parts.person));
    for (const [hash] of own.slice(0, Math.max(0, own.length + 1 - maxOfPerson)))
      this.#end(hash, "another browser has signed in");
    if (this.#open.size >= maxSessions) throw new Refusal(503, "too many people have the page open", reviewMs / 1000);
    const [session, key] = [secret(), secret()];
    this.#open.set(hashOf(session), { key: hashOf(key), session: new Session(parts) });
    return { session, key };
  }

  /** @returns `undefined` unless both are of the same session, which has not ended */
  find({ session, key }: Secrets): Session | undefined {
    this.#sweep();
    const found = this.#open.get(hashOf(session));
    return found !== undefined && isSameText(hashOf(key), found.key) ? found.session : undefined;
  }

  end(session: Session, why: string): void {
    for (const [hash, each] of this.#open) if (each.session === session) this.#end(hash, why);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    for (const hash of [...this.#open.keys()]) this.#end(hash, "the server stops");
  }

  #sweep(): void {
    for (const [hash, { session }] of this.#open) if (session.over !== undefined) this.#end(hash, session.over);
  }

  #end(hash: string, why: string): void {
    const found = this.#open.get(hash);
    if (found === undefined) return;
    this.#open.delete(hash);
    found.session[Symbol.dispose]();
    this.#logger.info("a session of the page has ended", { person: found.session.person.user.name, why });
  }

  async #review(): Promise<void> {
    this.#sweep();
    await Promise.all(
      [...this.#open.values()].map(async ({ session }) => {
        try {
          await session.review();
        } catch (caught) {
          // Nothing is told to anybody without the API server, and a session that is not confirmed opens nothing.
          this.#logger.debug("an account cannot be looked up", { error: reasonOf(caught) });
        }
      }),
    );
    this.#sweep();
  }
}

const secret = (): string => randomBytes(secretBytes).toString("base64url");
const hashOf = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("base64");
