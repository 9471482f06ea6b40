import { ApiError, type ApiObject, mapIn, mapsIn, textIn } from "../../../shared/kubernetes/mod.ts";
import type { NetworkPolicy, Pod } from "../../../shared/policy/mod.ts";
import type { AskedCluster } from "./ask-cluster.ts";
import { policyName } from "./policy-words.ts";

/** What a node has reported of a policy. */
interface Reported {
  readonly node: string;
  readonly generation: number;
  /** Why it does not enforce it, if so. */
  readonly failure?: string;
}

export type Reports =
  | { readonly t: "known"; readonly nodes: readonly Reported[] }
  /** Nobody can be asked, or the one who answers does not know the policy. */
  | { readonly t: "unknown"; readonly why: string };

const path = "/apis/controlplane.antrea.io/v1beta2";

/** The controller's own view, asked through the API server. */
export class ControllerView {
  readonly #cluster: AskedCluster;
  /** The first reason why it cannot be asked, which is one for all. */
  #away: string | undefined;

  constructor(cluster: AskedCluster) {
    this.#cluster = cluster;
  }

  async reportsOf({ uid, ...policy }: NetworkPolicy): Promise<Reports> {
    if (this.#away !== undefined) return { t: "unknown", why: this.#away };
    try {
      const action = `ask the controller about NetworkPolicy "${policyName(policy)}"`;
      const status = await this.#cluster.client.get({ path: `${path}/networkpolicies/${uid}/status`, action });
      return { t: "known", nodes: mapsIn(status, "nodes").map(readReport) };
    } catch (caught) {
      const { message } = ApiError.from(caught);
      const isOfPolicy = caught instanceof ApiError && caught.status === 404 && message.includes(uid);
      if (isOfPolicy) return { t: "unknown", why: "the controller does not know the policy yet" };
      this.#away = message;
      return { t: "unknown", why: message };
    }
  }

  /**
   * Whether its computation comes to the same.
   * @returns `undefined` where it cannot be asked
   */
  async allows(
    ends: Readonly<Record<"source" | "destination", { readonly namespace: string; readonly name: string }>>,
    { protocol, port }: { readonly protocol: string; readonly port?: number },
  ): Promise<boolean | undefined> {
    if (this.#away !== undefined) return undefined;
    const query = new URLSearchParams({ protocol, ...(port === undefined ? {} : { port: String(port) }) });
    const pod = ({ namespace, name }: (typeof ends)["source"]) => ({ pod: { namespace, name } });
    const request = { source: pod(ends.source), destination: pod(ends.destination) };
    const asked = {
      kind: "NetworkPolicyEvaluation",
      apiVersion: "controlplane.antrea.io/v1beta2",
      metadata: {},
      request,
    };
    try {
      const ask = { path: `${path}/networkpolicyevaluation?${query}`, action: "have the controller evaluate policies" };
      const response = mapIn(await this.#cluster.client.create(ask, asked), "response");
      return mapIn(response, "rule")["action"] !== "Drop";
    } catch {
      return undefined;
    }
  }
}

function readReport(entry: ApiObject): Reported {
  const generation = entry["generation"];
  const isFailure = entry["realizationFailure"] === true;
  return {
    node: textIn(entry, "nodeName") ?? "",
    generation: typeof generation === "number" ? generation : 0,
    ...(isFailure ? { failure: textIn(entry, "message") ?? "it does not say why" } : {}),
  };
}

/** Whether the node enforces the policy as it is now, in words where it does not. */
export function stateOn(node: string, { generation }: NetworkPolicy, reports: Reports): string | undefined {
  if (reports.t === "unknown") return `not known: ${reports.why}`;
  const reported = reports.nodes.find((each) => each.node === node);
  if (reported === undefined) return "the node has not reported it";
  if (reported.failure !== undefined) return `not enforced: ${reported.failure}`;
  return reported.generation === generation
    ? undefined
    : `generation ${reported.generation}, while the API server has ${generation}`;
}

/** On how many of the nodes with pods of the policy it is enforced as it is now. */
export type Enforced =
  | { readonly t: "known"; readonly on: number; readonly of: number; readonly lacking: readonly string[] }
  | { readonly t: "unknown"; readonly why: string };

/** @param isolated the pods that it applies to */
export function enforcedOn(policy: NetworkPolicy, isolated: readonly Pod[], reports: Reports): Enforced {
  if (reports.t === "unknown") return reports;
  const nodes = [...new Set(isolated.flatMap(({ node }) => node ?? []))].sort();
  const lacking = nodes.flatMap((node) => {
    const not = stateOn(node, policy, reports);
    return not === undefined ? [] : [`node ${node}: ${not}`];
  });
  return { t: "known", on: nodes.length - lacking.length, of: nodes.length, lacking };
}
