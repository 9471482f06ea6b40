import type { Logger } from "../../../shared/log.ts";
import { parseJson } from "../../../shared/schema/json.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import type { About } from "../../../ui/stream/wire.ts";
import type { Commands, Visitor } from "../entrance.ts";
import { Hub } from "../hub.ts";
import { type Person, type TeamAccess, wishes } from "./person.ts";
import { type AgentsSource, PersonSource } from "./person-source.ts";

/** A working day. */
const longestMs = 12 * 3_600_000;
/** Without a request and without a page that is open. */
const idleMs = 30 * 60_000;
/** A session whose account could not be looked up for so long opens nothing until it is. */
const confirmedMs = 30_000;

export interface SessionParts {
  readonly person: Person;
  /** Theirs: only to ask again whether it still is. It goes to the API server, and nowhere else. */
  readonly token: string;
  readonly access: TeamAccess;
  readonly agents: AgentsSource;
  /** In which the agents are. */
  readonly namespace: string;
  readonly commands: Commands;
  readonly logger: Logger;
}

/** One browser of a person who has signed in: what it sees, until one of many reasons ends it. */
export class Session implements Visitor, Disposable {
  readonly person: Person;
  readonly hub: Hub;
  readonly commands: Commands;
  readonly #parts: SessionParts;
  readonly #ended = new AbortController();
  readonly #endsAtMs: number;
  #token: string;
  #usedAtMs = Date.now();
  #confirmedAtMs = Date.now();
  #over: string | undefined;

  constructor(parts: SessionParts) {
    const { person, token, agents, namespace, commands, logger } = parts;
    this.person = person;
    this.commands = commands;
    this.#parts = parts;
    this.#token = token;
    this.#endsAtMs = Math.min(Date.now() + longestMs, tokenEndMs(token) ?? Number.POSITIVE_INFINITY);
    this.hub = new Hub(new PersonSource(agents, person, namespace), logger);
  }

  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Why it is over; absent: it is not. */
  get over(): string | undefined {
    const now = Date.now();
    if (this.#over !== undefined) return this.#over;
    if (now >= this.#endsAtMs) return "its time is over";
    return now - this.#usedAtMs > idleMs && this.hub.followers === 0 ? "nobody has used it" : undefined;
  }

  isOf({ user }: Person): boolean {
    return user.name === this.person.user.name && user.uid === this.person.user.uid;
  }

  /** Notes that it is in use, and makes sure that its account is there still. @throws {Refusal} 503 where that cannot be asked */
  async use(): Promise<void> {
    this.#usedAtMs = Date.now();
    if (Date.now() - this.#confirmedAtMs > confirmedMs) await this.review();
  }

  /** Asks whether the token is good still, and whose it is. @throws {Refusal} 503 where that cannot be asked */
  async review(): Promise<void> {
    const user = await this.#parts.access.userOfToken(this.#token);
    if (user === undefined) this.#over = "the API server no longer knows the account or its token";
    else if (user.name !== this.person.user.name || user.uid !== this.person.user.uid)
      this.#over = "the account is another one";
    else {
      // Groups may change meanwhile.
      this.person.user = user;
      this.#confirmedAtMs = Date.now();
    }
  }

  async about(): Promise<Omit<About, "version" | "commands">> {
    const { agents } = this.#parts;
    const lacks = await withoutNodes(this.person, this.#parts.namespace);
    return {
      title: agents.title,
      isLive: agents.isLive,
      person: this.person.user.name,
      ...(lacks === undefined ? {} : { withoutNodes: lacks }),
    };
  }

  [Symbol.dispose](): void {
    this.#token = "";
    this.#over ??= "it was ended";
    this.#ended.abort(new Error(this.#over));
    this.hub[Symbol.dispose]();
  }
}

/** Why nothing of nodes is shown to somebody; of each node it is asked again. @throws {Refusal} 503 */
export async function withoutNodes(person: Person, namespace: string): Promise<string | undefined> {
  const lacks = await person.lacks([wishes.agents(namespace), wishes.token(namespace)]);
  return lacks === undefined ? undefined : `${lacks}: the role "pipette-viewer" lets them`;
}

/** The end that a JSON Web Token names (RFC 7519, 4.1.4), of one that the API server has taken; milliseconds since 1970. */
function tokenEndMs(token: string): number | undefined {
  try {
    const claims = parseJson(new TextDecoder().decode(Uint8Array.fromBase64(token.split(".")[1] ?? "", base64url)));
    const end = isObject(claims) ? claims["exp"] : undefined;
    return typeof end === "number" && Number.isFinite(end) ? end * 1000 : undefined;
  } catch {
    return undefined;
  }
}

const base64url = { alphabet: "base64url" } as const;
