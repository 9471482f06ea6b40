import { type Asker, type Reach, Refusal, statusOf, type User, type Wish } from "../../shared/access/mod.ts";
import type { Exchange } from "../../shared/https/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { traceOf } from "../../shared/reason.ts";
import { type ApiGroup, apiGroups, documents } from "./discovery.ts";
import { jsonType } from "./encoding.ts";
import { handlers } from "./handlers.ts";
import { isWatch } from "./node-watch.ts";
import type { ServedState } from "./served-state.ts";

/** Who may ask for what. */
export interface Access {
  /** @throws {Refusal} 401 for nobody who is known, 503 where that cannot be asked */
  userOf(asker: Asker): Promise<User>;
  /** @throws {Refusal} 503 where that cannot be asked */
  isAllowed(user: User, wish: Wish): Promise<boolean>;
  reachOf(user: User): Reach;
}

export interface ApiOptions {
  readonly logger: Logger;
  readonly access: Access;
  /** What is served now; absent before the first computation is complete. */
  readonly state: () => ServedState | undefined;
}

/** How long a client waits that asks before anything is computed. */
const retryAfterS = 1;

/** The API that agents and operators ask. */
export class ControlPlaneApi {
  readonly #options: ApiOptions;

  constructor(options: ApiOptions) {
    this.#options = options;
  }

  async serve(exchange: Exchange): Promise<void> {
    try {
      await this.#route(exchange);
    } catch (caught) {
      this.#refuse(exchange, caught);
    }
  }

  async #route(exchange: Exchange): Promise<void> {
    const { path, method } = exchange;
    if (path === "/healthz" || path === "/livez") return exchange.answer(200, "text/plain", "ok");
    if (path === "/readyz") {
      const isReady = this.#options.state() !== undefined;
      return exchange.answer(isReady ? 200 : 503, "text/plain", isReady ? "ok" : "the policies are not computed yet");
    }
    const document = documents.get(path);
    if (document === undefined) return await this.#resource(exchange);
    if (method !== "GET" && method !== "HEAD") throw new Refusal(405, "this can only be read");
    const user = await this.#userOf(exchange);
    await this.#allow(user, { t: "path", verb: "get", path });
    return exchange.answer(200, jsonType, JSON.stringify(document));
  }

  async #resource(exchange: Exchange): Promise<void> {
    const { of, plural, name, subresource } = placeOf(exchange.path);
    const resource = subresource === undefined ? plural : `${plural}/${subresource}`;
    const verb = verbOf(exchange, name !== "");
    const handler = of === undefined ? undefined : handlers.get(`${of.group} ${resource} ${verb}`);
    if (of === undefined || !of.resources.some((each) => each.name === resource))
      throw new Refusal(404, "the server could not find the requested resource");
    if (handler === undefined) throw new Refusal(405, `${resource} cannot be asked to ${verb}`);
    // Before anybody is asked who that is: nothing could be answered anyway.
    if (this.#options.state() === undefined) throw new Refusal(503, "the policies are not computed yet", retryAfterS);
    const { access } = this.#options;
    const user = await this.#userOf(exchange);
    const { group, version } = of;
    const named = { ...(name === "" ? {} : { name }), ...(subresource === undefined ? {} : { subresource }) };
    await this.#allow(user, { t: "resource", verb, group, version, resource: plural, ...named });
    const state = this.#options.state();
    if (state === undefined) throw new Refusal(503, "the policies are not computed yet", retryAfterS);
    await handler({ exchange, state, reach: access.reachOf(user), name });
  }

  /** @throws {Refusal} */
  async #userOf(exchange: Exchange): Promise<User> {
    const user = await this.#options.access.userOf(exchange);
    exchange.authenticated();
    return user;
  }

  async #allow(user: User, wish: Wish): Promise<void> {
    if (await this.#options.access.isAllowed(user, wish)) return;
    throw new Refusal(403, `"${user.name}" may not ${wish.verb} ${wish.t === "path" ? wish.path : wish.resource}`);
  }

  #refuse(exchange: Exchange, caught: unknown): void {
    const refusal = caught instanceof Refusal ? caught : new Refusal(500, "this failed here");
    if (!(caught instanceof Refusal)) this.#options.logger.error("a request has failed", { error: traceOf(caught) });
    const { retryAfterS: seconds } = refusal;
    const more: Record<string, string> = seconds === undefined ? {} : { "retry-after": String(seconds) };
    exchange.answer(refusal.status, jsonType, `${JSON.stringify(statusOf(refusal))}\n`, more);
  }
}

/** A name of an object: a uid. */
const place = /^\/apis\/([^/]+)\/([^/]+)\/([a-z]+)(?:\/([-a-zA-Z0-9.]{1,253})(?:\/([a-z]+))?)?$/;

function placeOf(path: string): {
  of: ApiGroup | undefined;
  plural: string;
  name: string;
  subresource: string | undefined;
} {
  const [, group, version, plural = "", name = "", subresource] = place.exec(path) ?? [];
  return { of: apiGroups.find((each) => each.group === group && each.version === version), plural, name, subresource };
}

function verbOf({ method, query }: Exchange, hasName: boolean): string {
  if (method === "POST") return "create";
  if (method !== "GET") return method.toLowerCase();
  if (isWatch(query)) return "watch";
  return hasName ? "get" : "list";
}
