import { symptomOf } from "../operator/why/mod.ts";
import { CniCode } from "../shared/errors.ts";
import type { KubernetesEvents } from "../shared/kubernetes/mod.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import { nameOf } from "./config/nodes-config.ts";
import type { DataPath } from "./datapath/datapath.ts";
import type { CallRecord, CallRing } from "./metrics/call-record.ts";

/** Has Events tell of the Node: they stand in the namespace "default", with its name as uid, as the kubelet writes them. */
export function tellOfNode(
  dataPath: DataPath,
  { nodes }: Pick<AgentConfig, "nodes">,
  events: Pick<KubernetesEvents, "tell"> | undefined,
): void {
  const name = nodes?.name ?? nameOf({});
  const of = { namespace: "default", name, uid: name };
  dataPath.tellTroubles?.((message) => events?.tell({ kind: "Node", of, reason: "PodsNotReached", message }));
}

/** Pods of whose failure a node tells in a minute: where all fail, the node's own Event says why. */
const podsPerMinute = 20;
/** An agent that starts, or waits for its registry: the runtime comes again, and nobody has to act. */
const passing: ReadonlySet<number> = new Set([CniCode.tryAgainLater]);

/**
 * Has Events tell of pods that get no network: the cause and the next step, where the runtime's own has its plugin's
 * sentence in many others. Each cause of a pod once, whatever its words are this time.
 */
export function tellOfPods(
  calls: Pick<CallRing, "tellFailures">,
  events: Pick<KubernetesEvents, "tell"> | undefined,
  now: () => number = () => performance.now(),
): void {
  if (events === undefined) return;
  let minute = { endsAt: 0, left: 0 };
  const recent = new Set<string>();
  calls.tellFailures(({ verb, pod, code, message, failedIn = "", times }) => {
    if (verb !== "ADD" || pod === undefined || pod.namespace === "" || (passing.has(code) && times < 2)) return;
    const symptom = symptomOf(message);
    const sameAs = symptom?.code ?? `${code} ${failedIn}`;
    const key = `${pod.namespace}/${pod.name} ${pod.uid ?? ""} ${sameAs}`;
    if (now() >= minute.endsAt) {
      minute = { endsAt: now() + 60_000, left: podsPerMinute };
      recent.clear();
    }
    // A runtime tries again every few seconds; the same takes nothing from the others.
    if (recent.has(key) || minute.left === 0) return;
    recent.add(key);
    minute.left--;
    const of = { namespace: pod.namespace, name: pod.name, uid: pod.uid ?? "" };
    events.tell({ kind: "Pod", of, reason: "NoPodNetwork", message: sentenceOf(pod, message, symptom), sameAs });
  });
}

function sentenceOf(
  { namespace, name }: NonNullable<CallRecord["pod"]>,
  message: string,
  symptom: ReturnType<typeof symptomOf>,
): string {
  const more = `"pipette why ${namespace}/${name}" says more`;
  if (symptom === undefined) return `No network: ${message.slice(0, 700)}; ${more}`;
  return `No network: ${symptom.cause}. What to do: ${symptom.todo.join("; ")}; ${more}`;
}
