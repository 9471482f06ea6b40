import { LogOnChange } from "../../shared/async/log-on-change.ts";
import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { certificateIn, issueMember, tunnelCertificate } from "../../shared/certificates/mod.ts";
import {
  type ApiClient,
  ApiError,
  type ApiObject,
  Informer,
  mapIn,
  mapsIn,
  textIn,
} from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import { publishConfigMap } from "../certificates/mod.ts";
import { type Agents, type Facts, type Granted, judge, type Refused } from "./judgement.ts";
import type { AuthoritySource, SigningAuthority } from "./signing-authority.ts";

export interface TunnelSignerOptions {
  readonly client: ApiClient;
  readonly logger: Logger;
  readonly agents: Agents;
  readonly authority: AuthoritySource;
  /** Told of each request that is answered. */
  readonly answered: (result: "signed" | "denied" | "failed") => void;
  readonly everyMs?: number;
}

/** How often it is looked whether the authority is published still, and for what could not be done. */
const usualEveryMs = 30_000;
const retry = { firstMs: 500, longestMs: 10_000, jitter: 0.5 } as const;

const resource = { group: "certificates.k8s.io", version: "v1", plural: "certificatesigningrequests" } as const;
const collection = `/apis/${resource.group}/${resource.version}/${resource.plural}`;

/** What is kept of a request: its name, while nobody has answered it. */
const waiting = {
  ...resource,
  project: (object: ApiObject) => (isAnswered(object) ? undefined : textIn(mapIn(object, "metadata"), "name")),
};

/**
 * Answers nodes' requests for certificates of IPsec. Any number of controllers may do so at once: a request's own version
 * says who was first.
 */
export class TunnelSigner implements AsyncDisposable {
  readonly #options: TunnelSignerOptions;
  readonly #requests: Informer<string>;
  readonly #loop: ReconcileLoop;
  readonly #facts: Facts;
  #authority: SigningAuthority | undefined;

  constructor(options: TunnelSignerOptions) {
    const { client, logger, agents, everyMs = usualEveryMs } = options;
    this.#options = options;
    this.#facts = clusterFacts(client, agents.namespace);
    this.#loop = new ReconcileLoop({
      ...{ what: "the nodes' certificates for IPsec", logger, everyMs, retry },
      reconcile: () => this.#look(),
    });
    const selection = { fields: `spec.signerName=${tunnelCertificate.signerName}` };
    this.#requests = new Informer(client, waiting, { logger, selection });
    const problem = new LogOnChange(logger);
    this.#requests.subscribe({
      changed: () => this.#loop.trigger(),
      stateChanged: (state) => {
        if (state.t === "failing")
          problem.log("the nodes' requests for certificates cannot be followed", state.error.message);
        else if (state.t === "watching") problem.clear();
      },
    });
    this.#loop.trigger();
  }

  /** When the authority that signs ends, in milliseconds of the epoch; `undefined` where there is none yet. */
  get authorityEndsMs(): number | undefined {
    return certificateIn(this.#authority?.issuer.cert ?? "")?.validToDate.getTime();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#requests[Symbol.asyncDispose]();
    await this.#loop[Symbol.asyncDispose]();
  }

  /** Answers why some wait. @throws {ApiError} */
  async #look(): Promise<string | undefined> {
    const { client, agents } = this.#options;
    const authority = await this.#options.authority.current();
    await publishConfigMap(client, agents.namespace, tunnelCertificate.configMap, authority.ca);
    this.#authority = authority;
    const names = [...this.#requests.objects.values()];
    if (names.length > 0 && Date.now() < authority.fromMs)
      return "a new authority signs once all nodes trust it, which they do in some minutes";
    let failure: string | undefined;
    for (const name of names) {
      try {
        await this.#answer(name, authority);
      } catch (caught) {
        // One that cannot be answered does not keep the others waiting.
        failure ??= reasonOf(caught);
      }
    }
    return failure;
  }

  /** @throws {ApiError} */
  async #answer(name: string, authority: SigningAuthority): Promise<void> {
    const { client, agents } = this.#options;
    const path = `${collection}/${encodeURIComponent(name)}`;
    const action = (verb: string): string => `${verb} certificatesigningrequest "${name}"`;
    try {
      let request = await client.get({ path, action: action("get") });
      if (isAnswered(request)) return;
      const verdict = await judge(request, agents, this.#facts);
      const isApproved = conditionTypes(request).includes("Approved");
      if (verdict.t === "refused") {
        // Somebody else may have approved what we do not sign.
        const type = isApproved ? "Failed" : "Denied";
        const ask = {
          path: `${path}/${isApproved ? "status" : "approval"}`,
          action: action(isApproved ? "fail" : "deny"),
        };
        await client.replace(ask, withCondition(request, type, verdict));
        this.#told(name, isApproved ? "failed" : "denied", { reason: verdict.reason, error: verdict.message });
        return;
      }
      if (!isApproved) {
        const why = { reason: "AgentOfNode", message: `the agent on node "${verdict.node}" asks for it` };
        const ask = { path: `${path}/approval`, action: action("approve") };
        request = await client.replace(ask, withCondition(request, "Approved", why));
      }
      const certificate = new TextEncoder().encode(issue(verdict, authority, new Date())).toBase64();
      const status = { ...mapIn(request, "status"), certificate };
      await client.replace({ path: `${path}/status`, action: action("sign") }, { ...request, status });
      this.#told(name, "signed", { node: verdict.node });
    } catch (caught) {
      // Another controller was first, or nobody wants it any more.
      if (!(caught instanceof ApiError && (caught.status === 404 || caught.status === 409))) throw caught;
    }
  }

  #told(request: string, result: "signed" | "denied" | "failed", fields: Readonly<Record<string, string>>): void {
    const { logger, answered } = this.#options;
    answered(result);
    if (result === "signed") logger.info("signed a node's certificate for IPsec", { request, ...fields });
    else logger.warn("refused a certificate for IPsec", { request, ...fields });
  }
}

function issue({ node: name, publicKey, lifetimeS }: Granted, { issuer }: SigningAuthority, now: Date): string {
  const authority = certificateIn(issuer.cert);
  const { earlierMs } = tunnelCertificate;
  const from = Math.max(now.getTime() - earlierMs, authority?.validFromDate.getTime() ?? 0);
  const until = Math.min(now.getTime() + lifetimeS * 1000, authority?.validToDate.getTime() ?? 0);
  const member = { organization: tunnelCertificate.organization, name, publicKey };
  return issueMember(member, issuer, { from: new Date(from), until: new Date(until) });
}

const conditionTypes = (request: ApiObject): readonly (string | undefined)[] =>
  mapsIn(mapIn(request, "status"), "conditions").map((condition) => textIn(condition, "type"));

function isAnswered(request: ApiObject): boolean {
  const types = conditionTypes(request);
  return (
    textIn(mapIn(request, "status"), "certificate") !== undefined ||
    types.includes("Denied") ||
    types.includes("Failed")
  );
}

/** The API server takes no longer messages than that by far; what stands in them is quoted from strangers. */
const maxMessageChars = 1_000;

function withCondition(
  request: ApiObject,
  type: string,
  { reason, message }: Pick<Refused, "reason" | "message">,
): object {
  const lastUpdateTime = `${new Date().toISOString().slice(0, 19)}Z`;
  const condition = { type, status: "True", reason, message: message.slice(0, maxMessageChars), lastUpdateTime };
  const status = mapIn(request, "status");
  return { ...request, status: { ...status, conditions: [...mapsIn(status, "conditions"), condition] } };
}

/** As the API server has them now: a pod that has just begun is in no cache. */
function clusterFacts(client: ApiClient, namespace: string): Facts {
  const get = async (path: string, action: string): Promise<ApiObject | undefined> => {
    try {
      return await client.get({ path, action });
    } catch (caught) {
      if (caught instanceof ApiError && caught.status === 404) return undefined;
      throw caught;
    }
  };
  return {
    hasNode: async (name) =>
      (await get(`/api/v1/nodes/${encodeURIComponent(name)}`, `get node "${name}"`)) !== undefined,
    pod: async (name) => {
      const path = `/api/v1/namespaces/${namespace}/pods/${encodeURIComponent(name)}`;
      const pod = await get(path, `get pod "${name}" in namespace "${namespace}"`);
      if (pod === undefined) return undefined;
      const [metadata, spec] = [mapIn(pod, "metadata"), mapIn(pod, "spec")];
      return {
        uid: textIn(metadata, "uid") ?? "",
        node: textIn(spec, "nodeName") ?? "",
        account: textIn(spec, "serviceAccountName") ?? "",
      };
    },
  };
}
