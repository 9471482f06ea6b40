import type { Logger } from "../../shared/log.ts";
import { traceOf } from "../../shared/reason.ts";
import { type Asker, type Reach, Refusal, statusOf, type User, type Wish } from "../access/mod.ts";
import type { WatchedResource, Watches } from "../watches/mod.ts";
import { acceptedEncoding, jsonType } from "./encoding.ts";
import type { Exchange } from "./exchange.ts";
import { isWatch, selectedNode, serveWatch } from "./node-watch.ts";

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
  readonly watches: () => Watches | undefined;
}

/** How long a client waits that asks before anything is computed. */
const retryAfterS = 1;

const antrea = { group: "controlplane.antrea.io", version: "v1beta2" };
const own = { group: "controlplane.pipette.io", version: "v1" };

/** `undefined`: the ordered watch. */
const watched: Readonly<Record<string, { readonly of: typeof own; readonly resource: WatchedResource | undefined }>> = {
  networkpolicies: { of: antrea, resource: "networkpolicies" },
  addressgroups: { of: antrea, resource: "addressgroups" },
  appliedtogroups: { of: antrea, resource: "appliedtogroups" },
  nodepolicies: { of: own, resource: undefined },
};

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
    if (["/healthz", "/livez"].includes(exchange.path)) return exchange.answer(200, "text/plain", "ok");
    if (exchange.path === "/readyz")
      return exchange.answer(this.#options.watches() === undefined ? 503 : 200, "text/plain", "ok");
    const [, group, version, plural = "", name] =
      /^\/apis\/([^/]+)\/([^/]+)\/([^/]+)(?:\/([^/]+))?$/.exec(exchange.path) ?? [];
    const found = watched[plural];
    if (found === undefined || found.of.group !== group || found.of.version !== version || name !== undefined)
      throw new Refusal(404, "the server could not find the requested resource");
    await this.#watch(exchange, plural, found);
  }

  async #watch(exchange: Exchange, plural: string, { of, resource }: (typeof watched)[string]): Promise<void> {
    // Before anybody is asked who that is: nothing could be answered anyway.
    const watches = this.#options.watches();
    if (watches === undefined) throw new Refusal(503, "the policies are not computed yet", retryAfterS);
    if (exchange.method !== "GET") throw new Refusal(405, "this can only be watched");
    if (!isWatch(exchange.query)) throw new Refusal(405, "this can only be watched");
    const node = selectedNode(exchange.query);
    if (node === undefined) throw new Refusal(400, "wanted the field selector nodeName=NODE");
    const { access } = this.#options;
    const user = await access.userOf(exchange);
    await this.#allow(user, { t: "resource", verb: "watch", ...of, resource: plural });
    const reach = access.reachOf(user);
    if (reach.t === "nothing" || (reach.t === "node" && reach.node !== node))
      throw new Refusal(403, `"${user.name}" may not follow node "${node}"`);
    serveWatch(exchange, watches, { node, resource, encoding: acceptedEncoding(exchange) });
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
