import { type ApiClient, type ApiObject, listIn, mapIn, textIn } from "../kubernetes/mod.ts";
import type { Logger } from "../log.ts";
import type { Pod } from "../policy/mod.ts";
import { reasonOf } from "../reason.ts";
import { type Asker, type ClientTrust, certifiedUser } from "./client-trust.ts";
import { operatorToken } from "./operator-token.ts";
import { Refusal } from "./refusal.ts";
import { Reviews } from "./reviews.ts";
import type { Reach, User, Wish } from "./user.ts";

export interface ClusterAccessOptions {
  readonly client: ApiClient;
  readonly logger: Logger;
  readonly trust: () => ClientTrust;
  /** By `namespace/name`. */
  readonly pod: (key: string) => Pod | undefined;
  /** Takes tokens for this audience in `operatorToken.header`; absent: no header but `authorization` says who asks. */
  readonly operatorAudience?: string;
}

const reviewPath = {
  token: "/apis/authentication.k8s.io/v1/tokenreviews",
  access: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
} as const;

/** How long a client waits before it asks again where the API server gave no answer. */
const retryAfterS = 5;

/** Who asks, and what they may: the API server decides. Where it cannot be asked nobody may anything. */
export class ClusterAccess {
  readonly #options: ClusterAccessOptions;
  readonly #tokens = new Reviews<User | undefined>();
  readonly #rights = new Reviews<boolean>();

  constructor(options: ClusterAccessOptions) {
    this.#options = options;
  }

  /** @throws {Refusal} 401 for nobody who is known, 503 where that cannot be asked */
  async userOf(asker: Asker): Promise<User> {
    const user =
      certifiedUser(asker, this.#options.trust()) ?? (await this.#operator(asker)) ?? (await this.#bearer(asker));
    if (user === undefined) throw new Refusal(401, "nobody who is known");
    return user;
  }

  /** @throws {Refusal} 503 where that cannot be asked */
  async isAllowed({ name: user, uid, groups, extra }: User, wish: Wish): Promise<boolean> {
    const { t, ...attributes } = wish;
    const what = t === "path" ? { nonResourceAttributes: attributes } : { resourceAttributes: attributes };
    const spec = { user, uid, groups, extra, ...what };
    return await this.#rights.get(JSON.stringify(spec), async () => {
      const { status } = await this.#review("access", {
        kind: "SubjectAccessReview",
        apiVersion: "authorization.k8s.io/v1",
        spec,
      });
      return status["allowed"] === true && status["denied"] !== true;
    });
  }

  /** A pod's token is good for the node where the pod is, and a node's own for that node. */
  reachOf({ name, groups, extra }: User): Reach {
    const [node] = valuesIn(extra, "authentication.kubernetes.io/node-name");
    if (node !== undefined) return { t: "node", node };
    const [, kubelet] = /^system:node:(.+)$/.exec(name) ?? [];
    if (kubelet !== undefined && groups.includes("system:nodes")) return { t: "node", node: kubelet };
    const [podName] = valuesIn(extra, "authentication.kubernetes.io/pod-name");
    if (podName === undefined) return { t: "all nodes" };
    // Of an API server that does not say which node, as before Kubernetes 1.30.
    const [, namespace] = /^system:serviceaccount:([^:]+):/.exec(name) ?? [];
    const pod = this.#options.pod(`${namespace}/${podName}`);
    const [uid] = valuesIn(extra, "authentication.kubernetes.io/pod-uid");
    return pod?.node === undefined || pod.uid !== uid ? { t: "nothing" } : { t: "node", node: pod.node };
  }

  /**
   * Whose token that is, as the API server says it of those for itself.
   * @returns `undefined` for nobody's @throws {Refusal} 503 where that cannot be asked
   */
  async userOfToken(token: string): Promise<User | undefined> {
    return await this.#tokens.get(token, async () => {
      const review = { kind: "TokenReview", apiVersion: "authentication.k8s.io/v1", spec: { token } };
      const { status } = await this.#review("token", review);
      return status["authenticated"] === true ? readUser(mapIn(status, "user")) : undefined;
    });
  }

  async #bearer(asker: Asker): Promise<User | undefined> {
    const [, token] = /^Bearer +(\S+)$/i.exec(asker.header("authorization") ?? "") ?? [];
    return token === undefined ? undefined : await this.userOfToken(token);
  }

  /** Somebody with a token that is for this server, and for no other: an API server does not take it either. */
  async #operator(asker: Asker): Promise<User | undefined> {
    const audience = this.#options.operatorAudience;
    const token = audience === undefined ? undefined : asker.header(operatorToken.header);
    if (audience === undefined || token === undefined || !isToken(token)) return undefined;
    return await this.#tokens.get(`${audience} ${token}`, async () => {
      const spec = { token, audiences: [audience] };
      const review = { kind: "TokenReview", apiVersion: "authentication.k8s.io/v1", spec };
      const { status } = await this.#review("token", review);
      // An authenticator that knows nothing of audiences says none, and may have taken a token for anybody.
      const isForThis = listIn(status, "audiences").includes(audience);
      return status["authenticated"] === true && isForThis ? readUser(mapIn(status, "user")) : undefined;
    });
  }

  async #review(what: keyof typeof reviewPath, review: object): Promise<{ readonly status: ApiObject }> {
    try {
      const ask = { path: reviewPath[what], action: what === "token" ? "review a token" : "review a right" };
      return { status: mapIn(await this.#options.client.create(ask, review), "status") };
    } catch (caught) {
      this.#options.logger.warn("nobody can be let in without the API server", { error: reasonOf(caught) });
      throw new Refusal(503, "the API server cannot be asked who that is", retryAfterS);
    }
  }
}

/** Characters of a JSON Web Token, of which one of an account has about a thousand. */
const isToken = (text: string): boolean => text.length <= 16_384 && /^[A-Za-z0-9._-]+$/.test(text);

function readUser(object: ApiObject): User | undefined {
  const name = textIn(object, "username");
  if (name === undefined) return undefined;
  const extra = mapIn(object, "extra");
  return {
    name,
    uid: textIn(object, "uid") ?? "",
    groups: textsIn(object, "groups"),
    extra: Object.fromEntries(Object.keys(extra).map((key) => [key, textsIn(extra, key)])),
  };
}

const textsIn = (object: ApiObject, key: string): string[] =>
  listIn(object, key).filter((value) => typeof value === "string");

const valuesIn = (extra: User["extra"], key: string): readonly string[] =>
  Object.hasOwn(extra, key) ? (extra[key] ?? []) : [];
