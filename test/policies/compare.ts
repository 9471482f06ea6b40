import type { NodePolicies } from "../../agent/datapath/policies.ts";
import { readEvent } from "../../agent/policies/events.ts";
import { PolicySet } from "../../agent/policies/policy-set.ts";
import { RuleStore } from "../../agent/policies/rule-store.ts";
import { PolicyComputation } from "../../controller/policy/mod.ts";
import { type Ip, parseIp } from "../../shared/net/ip.ts";
import { type Endpoint, evaluate, type NetworkPolicy, type Pod, readPod, readPolicy } from "../../shared/policy/mod.ts";
import { allows } from "../fakes/policy-enforcement.ts";
import {
  type DrawnCluster,
  type DrawnQuestion,
  drawCluster,
  drawQuestion,
  nodeNames,
} from "../fakes/random-cluster.ts";
import { random } from "../support/random.ts";
import { NodeView } from "./node-view.ts";
import { mayReach, type PlainEnd, type PlainPod } from "./oracle.ts";
import { ownerOf, wholeState } from "./told-node.ts";

const questionsPerCluster = 100;

export interface Compared {
  readonly asked: number;
  readonly allowed: number;
  /** Questions at least one end of which was isolated. */
  readonly isolated: number;
}

/**
 * Asks about random clusters: the evaluator, the second one that is written from the specification, what nodes would
 * enforce that have only what the computation gives them, and what agents have data paths enforce that were told of it. @throws {Error} at the first difference
 */
export function compare(seed: number, questions: number): Compared {
  let [asked, allowed, isolated] = [0, 0, 0];
  for (let drawn = 0; asked < questions; drawn++) {
    const next = random(seed * 1_000_003 + drawn);
    const cluster = drawCluster(next);
    const subject = new Subject(cluster);
    for (let i = 0; i < questionsPerCluster && asked < questions; i++, asked++) {
      const question = drawQuestion(cluster, next);
      const { source, destination, traffic } = question;
      const expected = mayReach(cluster, source, destination, traffic);
      const { verdict, enforced, told } = subject.ask(question);
      if (verdict.allowed !== expected || enforced !== expected || told !== expected)
        throw new Error(
          `expected ${expected}, evaluated ${verdict.allowed}, enforced ${enforced}, by agents ${told}\n` +
            `${JSON.stringify({ seed, drawn, question, ...cluster, namespaces: [...cluster.namespaces] }, null, 1)}`,
        );
      if (expected) allowed++;
      if ([verdict.egress.t, verdict.ingress.t].some((t) => t === "allowed" || t === "denied")) isolated++;
    }
  }
  return { asked, allowed, isolated };
}

interface Ips {
  readonly source: Ip;
  readonly destination: Ip;
}

/** A node that lets through or not. */
interface Enforcing {
  allows(question: DrawnQuestion, ips: Ips, end: "egress" | "ingress"): boolean;
}

/** An agent that a controller told all, with all pods of its node attached. */
class ToldAgent implements Enforcing {
  readonly #policies: NodePolicies;

  constructor(state: ReturnType<PolicyComputation["onNode"]>, pods: readonly Pod[]) {
    const set = new PolicySet();
    for (const { type, kind, raw } of wholeState(state, pods)) set.apply(readEvent(type, kind, raw));
    const store = new RuleStore();
    for (const pod of pods) if (!pod.hostNetwork) store.attach(ownerOf(pod), pod);
    store.replace(set, true);
    this.#policies = store.take();
  }

  allows({ source, destination, traffic }: DrawnQuestion, ips: Ips, end: "egress" | "ingress"): boolean {
    const [self, other] = end === "egress" ? [source.pod, ips.destination] : [destination.pod, ips.source];
    if (self === undefined) return true;
    return allows(this.#policies, ownerOf(self.metadata), { direction: end, other, ...traffic });
  }
}

/** The product's side of a cluster. */
class Subject {
  readonly #cluster: DrawnCluster;
  readonly #pods: ReadonlyMap<PlainPod, Pod>;
  readonly #policies: readonly NetworkPolicy[];
  readonly #views: ReadonlyMap<string, Enforcing>;
  readonly #agents: ReadonlyMap<string, Enforcing>;

  constructor(cluster: DrawnCluster) {
    this.#cluster = cluster;
    this.#pods = new Map(cluster.pods.map((plain) => [plain, orThrow(readPod({ ...plain }))]));
    this.#policies = cluster.policies.map((plain) => orThrow(readPolicy({ ...plain })));
    const computation = new PolicyComputation();
    for (const policy of this.#policies) computation.putPolicy(policy);
    for (const pod of this.#pods.values()) computation.putPod(pod);
    for (const [name, labels] of cluster.namespaces) computation.putNamespace({ name, labels });
    computation.take();
    this.#views = new Map(nodeNames.map((node) => [node, new NodeView(node, computation.onNode(node))]));
    const onNode = (node: string): Pod[] => [...this.#pods.values()].filter((pod) => pod.node === node);
    this.#agents = new Map(nodeNames.map((node) => [node, new ToldAgent(computation.onNode(node), onNode(node))]));
  }

  ask(question: DrawnQuestion): { verdict: ReturnType<typeof evaluate>; enforced: boolean; told: boolean } {
    const cluster = {
      namespaceLabels: (name: string) => this.#cluster.namespaces.get(name),
      policiesIn: (name: string) => this.#policies.filter(({ namespace }) => namespace === name),
    };
    const [source, destination] = [this.#endpoint(question.source), this.#endpoint(question.destination)];
    const verdict = evaluate(cluster, { source, destination, traffic: question.traffic });
    const ips = { source: source.ip, destination: destination.ip };
    const by = (nodes: ReadonlyMap<string, Enforcing>): boolean => this.#enforce(nodes, question, ips);
    return { verdict, enforced: by(this.#views), told: by(this.#agents) };
  }

  #enforce(nodes: ReadonlyMap<string, Enforcing>, question: DrawnQuestion, ips: Ips): boolean {
    const { source, destination } = question;
    // The data path lets these through before it looks at policies.
    if (source.pod !== undefined && source.pod === destination.pod) return true;
    const [from, to] = [source.pod?.spec, destination.pod?.spec];
    const isOver = ["Succeeded", "Failed"].includes(source.pod?.status.phase ?? "");
    const fromNode = from?.hostNetwork === true && !isOver && from.nodeName === to?.nodeName;
    const at = (spec: PlainPod["spec"] | undefined): Enforcing | undefined => nodes.get(spec?.nodeName ?? "");
    const leaves = at(from)?.allows(question, ips, "egress") ?? true;
    return leaves && (fromNode || (at(to)?.allows(question, ips, "ingress") ?? true));
  }

  #endpoint({ pod, ip }: PlainEnd): Endpoint & { readonly ip: Ip } {
    const address = orThrow(parseIp(ip));
    return pod === undefined
      ? { t: "outside", ip: address }
      : { t: "pod", pod: orThrow(this.#pods.get(pod)), ip: address };
  }
}

function orThrow<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("what was drawn cannot be read");
  return value;
}
