import { PolicyComputation } from "../../../controller/policy/mod.ts";
import { type ApiObject, mapIn, textIn } from "../../../shared/kubernetes/mod.ts";
import { namespaces, networkPolicies, type Pod, pods } from "../../../shared/policy/mod.ts";
import { random } from "../../support/random.ts";
import { summarize } from "../stats.ts";
import { policyOf, type Workload } from "./workloads.ts";

export interface PolicyFigures {
  readonly name: string;
  readonly namespaces: number;
  readonly pods: number;
  readonly policies: number;
  readonly appliedToGroups: number;
  readonly addressGroups: number;
  /** From objects as the API server sends them to what all nodes need. */
  readonly computedMs: number;
  /** One pod's event, from the object to the changes for nodes. */
  readonly podEventsPerSecond: number;
  readonly podEventP99Us: number;
  /** One policy that lets others in than before. */
  readonly policyEventP99Us: number;
  /** Of the whole process, at the most. */
  readonly peakBytes: number;
}

/** Everything from nothing, then single events. */
export function measurePolicies(workload: Workload, events: number): PolicyFigures {
  const computation = new PolicyComputation();
  const kept: Pod[] = [];
  const started = performance.now();
  for (const object of workload.namespaces())
    given(namespaces.project(object), (each) => computation.putNamespace(each));
  for (const object of workload.pods())
    given(pods.project(object), (pod) => {
      kept.push(pod);
      computation.putPod(pod);
    });
  for (const object of workload.policies())
    given(networkPolicies.project(object), (each) => computation.putPolicy(each));
  const first = computation.take();
  const computedMs = performance.now() - started;
  const { namespaces: known, ...size } = computation.size;
  const podUs = measurePods(computation, kept, events);
  const policyUs = measurePolicyChanges(computation, workload, Math.ceil(events / 10));
  return {
    name: workload.name,
    namespaces: known,
    pods: size.pods,
    policies: first.policies.length,
    appliedToGroups: first.appliedToGroups.length,
    addressGroups: first.addressGroups.length,
    computedMs,
    podEventsPerSecond: (podUs.length / podUs.reduce((sum, us) => sum + us, 0)) * 1e6,
    podEventP99Us: summarize(podUs).p99,
    policyEventP99Us: summarize(policyUs).p99,
    peakBytes: process.resourceUsage().maxRSS * 1024,
  };
}

/** A pod ends, its successor is scheduled on another node, and gets an address there: three events, over and over. */
function measurePods(computation: PolicyComputation, all: readonly Pod[], events: number): number[] {
  const next = random(2);
  const times: number[] = [];
  for (let i = 0; i < events; i += 3) {
    const pod = all[next(all.length)] as Pod;
    const successor = { ...pod, uid: `${pod.uid}-${i}`, node: `node-${next(1_000)}`, ips: [] };
    const { ips } = pod;
    times.push(timed(() => computation.deletePod(`${pod.namespace}/${pod.name}`), computation));
    times.push(timed(() => computation.putPod(successor), computation));
    times.push(timed(() => computation.putPod({ ...successor, ips }), computation));
  }
  return times;
}

function measurePolicyChanges(computation: PolicyComputation, workload: Workload, events: number): number[] {
  const times: number[] = [];
  for (const object of workload.policies()) {
    const metadata = mapIn(object, "metadata");
    const [namespace, name] = [textIn(metadata, "namespace") ?? "", textIn(metadata, "name") ?? ""];
    const labels = mapIn(mapIn(mapIn(object, "spec"), "podSelector"), "matchLabels") as Readonly<
      Record<string, string>
    >;
    const changed: ApiObject = policyOf(namespace, name, labels, { podSelector: { matchLabels: { new: name } } });
    given(networkPolicies.project(changed), (policy) => {
      times.push(timed(() => computation.putPolicy(policy), computation));
    });
    if (times.length >= events) break;
  }
  return times;
}

function timed(event: () => void, computation: PolicyComputation): number {
  const started = performance.now();
  event();
  computation.take();
  return (performance.now() - started) * 1000;
}

function given<T>(value: T | undefined, then: (value: T) => void): void {
  if (value === undefined) throw new Error("an object of the workload cannot be read");
  then(value);
}

export const policyTable = (figures: readonly PolicyFigures[]): string =>
  [
    "| cluster | pods | policies | groups: targets, peers | from nothing | memory, most | pod events a second | p99 of one | p99 of a policy's change |",
    "|---|---|---|---|---|---|---|---|---|",
    ...figures.map((each) =>
      [
        `| ${each.name}`,
        each.pods,
        each.policies,
        `${each.appliedToGroups}, ${each.addressGroups}`,
        `${(each.computedMs / 1000).toFixed(2)} s`,
        `${Math.round(each.peakBytes / 1e6)} MB`,
        Math.round(each.podEventsPerSecond),
        `${each.podEventP99Us.toFixed(0)} µs`,
        `${each.policyEventP99Us.toFixed(0)} µs |`,
      ].join(" | "),
    ),
  ].join("\n");
