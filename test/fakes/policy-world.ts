import type { ApiObject } from "../../shared/kubernetes/mod.ts";
import { type Ip, parseIp } from "../../shared/net/ip.ts";
import {
  type Cluster,
  type Endpoint,
  evaluate,
  type Labels,
  type NetworkPolicy,
  type Pod,
  type Question,
  readPod,
  readPolicy,
  type Verdict,
} from "../../shared/policy/mod.ts";

/**
 * A small cluster with policies, and questions about it in short. Unless a case says otherwise: namespaces x, y and z,
 * labelled `ns`, each with pods a, b and c, labelled `pod`, on nodes n-a, n-b and n-c, which serve 80 by the name "web".
 */
export interface PolicyCase {
  readonly name: string;
  /** Specs of policies, by namespace. */
  readonly policies: readonly (readonly [namespace: string, spec: ApiObject])[];
  /** Changes of the usual pods, and further ones. */
  readonly pods?: Readonly<Record<string, ApiObject>>;
  readonly labels?: Readonly<Record<string, Labels>>;
  readonly allowed?: readonly string[];
  readonly denied?: readonly string[];
}

/** Parts of a policy's spec. */
export const pod = (of: string): ApiObject => ({ podSelector: { matchLabels: { pod: of } } });
export const ns = (of: string): ApiObject => ({ namespaceSelector: { matchLabels: { ns: of } } });
export const block = (cidr: string, ...except: string[]): ApiObject => ({ ipBlock: { cidr, except } });
export const ingress = (...rules: ApiObject[]): ApiObject => ({
  podSelector: {},
  ingress: rules,
  policyTypes: ["Ingress"],
});
export const egress = (...rules: ApiObject[]): ApiObject => ({
  podSelector: {},
  egress: rules,
  policyTypes: ["Egress"],
});
export const toA = (spec: ApiObject): ApiObject => ({ ...spec, podSelector: { matchLabels: { pod: "a" } } });
export const ports = (...list: ApiObject[]): ApiObject => ({ ports: list });
export const containers = (...list: ApiObject[]): ApiObject => ({ containers: [{ ports: list }] });

export function selecting(key: string, operator: string, ...values: string[]): ApiObject {
  return { podSelector: { matchExpressions: [{ key, operator, values }] } };
}

export function bare(ip: string): ApiObject {
  return { labels: {}, ips: [ip] };
}

export function webAt(containerPort: number): ApiObject {
  return { spec: containers({ name: "web", containerPort }) };
}

export class PolicyWorld {
  readonly #pods = new Map<string, Pod>();
  readonly #labels = new Map<string, Labels>();
  readonly #policies: readonly NetworkPolicy[];

  constructor({ policies, pods = {}, labels = {} }: Omit<PolicyCase, "name">) {
    const names = ["x", "y", "z"].flatMap((namespace) => ["a", "b", "c"].map((name) => `${namespace}/${name}`));
    for (const [i, key] of [...new Set([...names, ...Object.keys(pods)])].entries()) this.#add(key, i, pods[key]);
    for (const name of ["w", "x", "y", "z"])
      this.#labels.set(name, { ns: name, "kubernetes.io/metadata.name": name, ...labels[name] });
    this.#policies = policies.flatMap(
      ([namespace, spec], i) => readPolicy({ metadata: { namespace, name: `policy-${i}` }, spec }) ?? [],
    );
  }

  #add(key: string, i: number, changes: ApiObject = {}): void {
    const [namespace = "", name = ""] = key.split("/");
    const {
      labels = { pod: name },
      spec,
      phase,
      ips = [`10.0.${1 + Math.floor(i / 3)}.${1 + (i % 3)}`],
      ...more
    } = changes;
    const object = {
      metadata: { namespace, name, uid: key, labels, ...more },
      spec: { nodeName: `n-${name}`, ...containers({ name: "web", containerPort: 80 }), ...(spec as ApiObject) },
      status: { phase, podIPs: (ips as string[]).map((ip) => ({ ip })) },
    };
    const pod = readPod(object);
    if (pod !== undefined) this.#pods.set(key, pod);
  }

  get cluster(): Cluster {
    return {
      namespaceLabels: (name) => this.#labels.get(name),
      policiesIn: (name) => this.#policies.filter(({ namespace }) => namespace === name),
    };
  }

  /** `x/a -> y/b:80/UDP`; `@node`, and addresses, at either end. */
  ask(text: string): Verdict {
    return evaluate(this.cluster, this.question(text));
  }

  question(text: string): Question {
    const [, source = "", destination = "", port = "", protocol = "TCP"] =
      /^(\S+) -> (\S+?):(\d+)(?:\/(\w+))?$/.exec(text) ?? [];
    const number = Number(port);
    const traffic = protocol.startsWith("ICMP") ? { protocol, icmpType: number } : { protocol, port: number };
    return { source: this.#at(source), destination: this.#at(destination), traffic };
  }

  #at(text: string): Endpoint {
    if (text.startsWith("@")) return { t: "node", node: text.slice(1), ip: ipOf("192.168.0.200") };
    const pod = this.#pods.get(text);
    if (pod === undefined) return { t: "outside", ip: ipOf(text) };
    const [ip] = pod.ips;
    return ip === undefined ? { t: "pod", pod } : { t: "pod", pod, ip };
  }
}

function ipOf(text: string): Ip {
  const ip = parseIp(text);
  if (ip === undefined) throw new Error(`"${text}" is no address`);
  return ip;
}
