import { type Reach, Refusal, type User } from "../../shared/access/mod.ts";
import { allow, answerScrape, type Exchange, type Guard, identify, refuse } from "../../shared/https/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { contentType } from "../../shared/metrics/mod.ts";
import { type ApiGroup, apiGroups, documents } from "./discovery.ts";
import { jsonType } from "./encoding.ts";
import { handlers } from "./handlers.ts";
import { isWatch } from "./node-watch.ts";
import type { ServedState } from "./served-state.ts";

/** Who may ask for what, and of which node they may know. */
export interface Access extends Guard {
  reachOf(user: User): Reach;
}

export interface ApiOptions {
  readonly logger: Logger;
  readonly access: Access;
  /** What is served now; absent before the first computation is complete. */
  readonly state: () => ServedState | undefined;
  /** The numbers of this process, as Prometheus reads them. */
  readonly metrics: () => Promise<string>;
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
      refuse(exchange, caught, this.#options.logger);
    }
  }

  async #route(exchange: Exchange): Promise<void> {
    const { path, method } = exchange;
    if (path === "/healthz" || path === "/livez") return exchange.answer(200, "text/plain", "ok");
    if (path === "/readyz") {
      const isReady = this.#options.state() !== undefined;
      return exchange.answer(isReady ? 200 : 503, "text/plain", isReady ? "ok" : "the policies are not computed yet");
    }
    const { metrics, access } = this.#options;
    if (path === "/metrics") return await answerScrape(exchange, { text: metrics, contentType }, access);
    const document = documents.get(path);
    if (document === undefined) return await this.#resource(exchange);
    if (method !== "GET" && method !== "HEAD") throw new Refusal(405, "this can only be read");
    await allow(access, await identify(access, exchange), { t: "path", verb: "get", path });
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
    const user = await identify(access, exchange);
    const { group, version } = of;
    const named = { ...(name === "" ? {} : { name }), ...(subresource === undefined ? {} : { subresource }) };
    await allow(access, user, { t: "resource", verb, group, version, resource: plural, ...named });
    const state = this.#options.state();
    if (state === undefined) throw new Refusal(503, "the policies are not computed yet", retryAfterS);
    await handler({ exchange, state, reach: access.reachOf(user), name });
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
