import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { networkPolicies, type Pod, pods } from "../../../shared/policy/mod.ts";
import { ServedPolicies } from "../../policies/served-policies.ts";
import { random } from "../../support/random.ts";
import { summarize } from "../stats.ts";
import { policyOf } from "./workloads.ts";

export interface WatchFigures {
  readonly nodes: number;
  /** From a policy's change to the last node that hears of it. */
  readonly lastNodeMs: { readonly p50: number; readonly p99: number };
  readonly podEventsPerSecond: number;
  /** How late the server came to its next events, while the pods' went on. */
  readonly lagP99Ms: number;
  /** Of one processor, meanwhile. */
  readonly load: number;
  readonly peakBytes: number;
}

const podsPerNode = 10;
/** Pods come in handfuls, as they do. */
const tickMs = 10;

/** A thousand nodes follow over HTTPS; a policy for all of them changes, and then pods come and go on all of them. */
export async function measureWatches(
  nodes: number,
  changes: number,
  seconds: number,
  perSecond: number,
): Promise<WatchFigures> {
  await using served = await ServedPolicies.start();
  const { computation } = served;
  const all: Pod[] = [];
  for (let i = 0; i < nodes * podsPerNode; i++) {
    const [namespace, node] = [`ns-${i % 100}`, `node-${i % nodes}`];
    const address = `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
    const object = {
      metadata: { namespace, name: `pod-${i}`, uid: `uid-${i}`, labels: { app: i < nodes ? "all" : "one" } },
    };
    const pod = pods.project({ ...object, spec: { nodeName: node }, status: { podIPs: [{ ip: address }] } });
    if (pod === undefined) throw new Error("a pod of the benchmark cannot be read");
    // One pod of each node is in one namespace, for one policy that concerns all nodes.
    all.push(i < nodes ? { ...pod, namespace: "everywhere" } : pod);
    computation.putPod(all.at(-1) as Pod);
  }
  const change = (generation: number): void => {
    const object = policyOf(
      "everywhere",
      "p",
      { app: "all" },
      { ipBlock: { cidr: `10.0.0.0/${8 + (generation % 20)}` } },
    );
    const policy = networkPolicies.project({ ...object, metadata: { ...(object["metadata"] as object), generation } });
    if (policy !== undefined) computation.putPolicy(policy);
    served.changed();
  };
  change(0);
  for (let i = 0; i < 100; i++) {
    const policy = networkPolicies.project(policyOf(`ns-${i}`, "p", { app: "one" }, { podSelector: {} }));
    if (policy !== undefined) computation.putPolicy(policy);
  }
  const program = new URL("watching-nodes.ts", import.meta.url).pathname;
  const words = [process.execPath, program, served.url, served.caFile, String(nodes)];
  const child = Bun.spawn(words, { stdout: "pipe", stderr: "inherit" });
  try {
    const lines = createInterface({ input: Readable.fromWeb(child.stdout as never) })[Symbol.asyncIterator]();
    const next = async (wanted: string): Promise<number> => {
      for (;;) {
        const { value, done } = await lines.next();
        if (done === true) throw new Error("the nodes of the benchmark have ended");
        const [word, number] = String(value).split(" ");
        if (word === wanted) return Number(number);
      }
    };
    await next("ready");
    const lastMs: number[] = [];
    for (let generation = 1; generation <= changes; generation++) {
      const started = performance.timeOrigin + performance.now();
      change(generation);
      lastMs.push((await next("all")) - started);
    }
    const churn = await measureChurn(served, all.slice(nodes), seconds, perSecond);
    for (let marks = 0; marks < churn.marks; ) marks = await next("marks");
    const { median: p50, p99 } = summarize(lastMs);
    const peakBytes = process.resourceUsage().maxRSS * 1024;
    return {
      nodes,
      lastNodeMs: { p50, p99 },
      podEventsPerSecond: perSecond,
      lagP99Ms: churn.lagP99Ms,
      load: churn.load,
      peakBytes,
    };
  } finally {
    child.kill();
    await child.exited;
  }
}

/** A pod goes and its successor comes on another node, at a pace. Each of these tells two nodes of a mark. */
async function measureChurn(
  served: ServedPolicies,
  all: Pod[],
  seconds: number,
  perSecond: number,
): Promise<{ readonly marks: number; readonly lagP99Ms: number; readonly load: number }> {
  const next = random(3);
  const lags: number[] = [];
  const cpu = process.cpuUsage();
  const started = performance.now();
  let marks = 0;
  for (let tick = 0; tick < (seconds * 1000) / tickMs; tick++) {
    const due = started + tick * tickMs;
    const early = due - performance.now();
    if (early > 0) await Bun.sleep(early);
    lags.push(Math.max(0, performance.now() - due));
    for (let i = 0; i < (perSecond * tickMs) / 1000; i += 2) {
      // Each in its turn: of a pod that comes and goes within one moment nobody hears.
      const at = (marks / 2) % all.length;
      const pod = all[at] as Pod;
      all[at] = { ...pod, uid: `${pod.uid}-${tick}`, node: (all[next(all.length)] as Pod).node ?? "" };
      served.computation.deletePod(`${pod.namespace}/${pod.name}`);
      served.changed();
      served.computation.putPod(all[at] as Pod);
      served.changed();
      marks += 2;
    }
  }
  const { user, system } = process.cpuUsage(cpu);
  return { marks, lagP99Ms: summarize(lags).p99, load: (user + system) / 1000 / (performance.now() - started) };
}

export const watchTable = ({
  nodes,
  lastNodeMs,
  podEventsPerSecond,
  lagP99Ms,
  load,
  peakBytes,
}: WatchFigures): string =>
  [
    "| nodes that follow | a policy's change reaches the last: p50 | p99 | pod events a second | lag p99 | of one processor | memory, most |",
    "|---|---|---|---|---|---|---|",
    [
      `| ${nodes}`,
      `${lastNodeMs.p50.toFixed(0)} ms`,
      `${lastNodeMs.p99.toFixed(0)} ms`,
      podEventsPerSecond,
      `${lagP99Ms.toFixed(1)} ms`,
      `${(load * 100).toFixed(0)} %`,
      `${Math.round(peakBytes / 1e6)} MB |`,
    ].join(" | "),
  ].join("\n");
