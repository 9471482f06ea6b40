import { type User, type Wish, wishText } from "../../../shared/access/mod.ts";
import { allow, type Guard } from "../../../shared/https/mod.ts";
import { accounts } from "../../cluster/agent-tokens.ts";

/** Who asks, and whose tokens those are. */
export interface TeamAccess extends Guard {
  /** @returns `undefined` for nobody's @throws {Refusal} 503 where that cannot be asked */
  userOfToken(token: string): Promise<User | undefined>;
}

const core = { t: "resource", group: "", version: "v1" } as const;

/** What the operator's tool needs for the same, which its user has to be allowed (docs/operator.md). */
export const wishes = {
  nodes: { ...core, verb: "list", resource: "nodes" },
  agents: (namespace: string): Wish => ({ ...core, verb: "list", resource: "pods", namespace }),
  agent: (namespace: string, name: string): Wish => ({
    ...core,
    verb: "get",
    resource: "pods",
    subresource: "proxy",
    namespace,
    name,
  }),
  token: (namespace: string): Wish => ({
    ...core,
    verb: "create",
    resource: "serviceaccounts",
    subresource: "token",
    namespace,
    name: accounts.read,
  }),
} as const;

/** Somebody who has signed in, and what the API server lets them do. */
export class Person {
  /** As the API server said it last. */
  user: User;
  readonly #access: TeamAccess;

  constructor(user: User, access: TeamAccess) {
    this.user = user;
    this.#access = access;
  }

  /** @throws {Refusal} 503 where that cannot be asked */
  may(wish: Wish): Promise<boolean> {
    return this.#access.isAllowed(this.user, wish);
  }

  /** @throws {Refusal} 403 where they may not, 503 where that cannot be asked */
  must(wish: Wish): Promise<void> {
    return allow(this.#access, this.user, wish);
  }

  /** @returns the first of these that they may not; `undefined`: all of them they may @throws {Refusal} as `may` */
  async lacks(wanted: readonly Wish[]): Promise<string | undefined> {
    for (const wish of wanted) if (!(await this.may(wish))) return `"${this.user.name}" may not ${wishText(wish)}`;
    return undefined;
  }
}
