import { operatorToken } from "../../shared/access/mod.ts";
import { type ApiClient, mapIn, textIn } from "../../shared/kubernetes/mod.ts";

/** The shortest that an API server gives. */
const lifeSeconds = 600;
/** A token is used for half its life: clocks differ, and a question may wait for half a minute. */
const useMs = (lifeSeconds * 1000) / 2;

/** Accounts of the chart, without other rights: one reads, one also changes the log level and begins traces. */
export const accounts = { read: "pipette-operator", write: "pipette-operator-write" } as const;
export type Account = keyof typeof accounts;

/** Tokens for agents, each for one node's: whoever answers as an agent can do nothing with it elsewhere. */
export class AgentTokens {
  readonly #client: ApiClient;
  readonly #namespace: string;
  readonly #tokens = new Map<string, { readonly until: number; readonly token: Promise<string> }>();

  constructor(client: ApiClient, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  /** @throws {ApiError} where the caller has no right to it */
  get(node: string, account: Account, signal: AbortSignal): Promise<string> {
    const key = `${account} ${node}`;
    const known = this.#tokens.get(key);
    if (known !== undefined && performance.now() < known.until) return known.token;
    const token = this.#request(node, account, signal);
    this.#tokens.set(key, { until: performance.now() + useMs, token });
    token.catch(() => this.#tokens.delete(key));
    return token;
  }

  async #request(node: string, account: Account, signal: AbortSignal): Promise<string> {
    const name = accounts[account];
    const path = `/api/v1/namespaces/${this.#namespace}/serviceaccounts/${name}/token`;
    const spec = { audiences: [operatorToken.audienceOf(node)], expirationSeconds: lifeSeconds };
    const action = `get a token of the account "${name}" in namespace "${this.#namespace}"`;
    const request = { kind: "TokenRequest", apiVersion: "authentication.k8s.io/v1", spec };
    const token = textIn(mapIn(await this.#client.create({ path, action, signal }, request), "status"), "token");
    if (token === undefined) throw new Error(`Cannot ${action}: the API server gives none`);
    return token;
  }
}
