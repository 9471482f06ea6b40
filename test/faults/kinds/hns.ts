import { formatIp } from "../../../shared/net/ip.ts";
import type { Fault as HnsFault } from "../../fakes/hns/faults.ts";
import { deleteNamespace } from "../../fakes/hns/namespaces.ts";
import type { StressNode, StressPod } from "../node/stress-node.ts";
import { WindowsStressNode } from "../node/windows-node.ts";
import type { Fault } from "../workload/fault.ts";

const on = ["hns"] as const;
const zeros = "00000000-0000-0000-0000-000000000000";

/** A call that hangs, or a service that is away: an ADD is to come again, a DEL is done later. */
const unanswered = { ADD: [11], CHECK: [11], GC: [11], STATUS: [50] } as const;
/** A call that is refused: no ADD that needs it works, and nothing can be said about a pod. */
const refused = { ADD: [11, 102], CHECK: [11, 102, 103], GC: [11], STATUS: [50] } as const;
/** While endpoints are away that the agent makes again. */
const remade = { ADD: [11], CHECK: [11, 103], STATUS: [50] } as const;

const calls = [
  "HcnOpenEndpoint",
  "HcnQueryEndpointProperties",
  "HcnCreateEndpoint",
  "HcnDeleteEndpoint",
  "HcnEnumerateEndpoints",
  "HcnOpenNamespace",
  "HcnModifyNamespace",
  "HcnOpenNetwork",
] as const;

const windowsOf = (node: StressNode) => {
  if (node instanceof WindowsStressNode) return node.windows;
  throw new Error("Cannot let HNS go wrong: the node has another data path, wanted a Windows node");
};

/** One that answers calls otherwise while it is in force. */
const answered = (
  name: string,
  refusals: Fault["refusals"],
  mishap: Omit<HnsFault, "call">,
  more?: Partial<Fault>,
): Fault => ({
  name,
  on,
  refusals,
  ...more,
  strike: async (node, _, random) => {
    const call = mishap.pretends === true ? "HcnDeleteEndpoint" : (calls[random(calls.length)] ?? calls[0]);
    const active = windowsOf(node).stubs.hns.fault({ ...mishap, call });
    return { what: call, lost: [], [Symbol.asyncDispose]: async () => active[Symbol.dispose]() };
  },
});

const hangs = answered("a call of HNS hangs once", unanswered, { holdMs: "until released", times: 1 });
const hangsAlways = answered("calls of HNS hang", unanswered, { holdMs: "until released" }, { endsAgent: true });
const hangsAfter = answered("calls of HNS are done and hang", unanswered, {
  holdMs: "until released",
  effectFirst: true,
  times: 2,
});
const fails = answered("calls of HNS fail", refused, { hresult: 0x80004005 });
const loses = answered("calls of HNS are done and fail", refused, { afterwards: 0x800706be, times: 3 });
const slow = answered("calls of HNS are slow", unanswered, { holdMs: 700 });
/** A GC says what stands still; the janitor goes on with it. */
const pretends = answered('HNS says "deleted" and keeps the endpoint', { GC: [11] }, { pretends: true });

const away: Fault = {
  name: "HNS is away, and comes back with what it had",
  on,
  refusals: { ...unanswered, CHECK: [11, 102] },
  strike: async (node) => {
    const { hns } = windowsOf(node).stubs;
    hns.isAway = true;
    return {
      what: "the service",
      lost: [],
      async [Symbol.asyncDispose]() {
        hns.isAway = false;
      },
    };
  },
};

const restarted: Fault = {
  name: "HNS restarts and has lost every endpoint",
  on,
  refusals: { ...remade, CHECK: [11, 102, 103] },
  interrupts: true,
  strike: async (node, pods) => {
    const { hns } = windowsOf(node).stubs;
    hns.isAway = true;
    hns.restart();
    return {
      what: `the service with ${pods.length} pods`,
      lost: [],
      async [Symbol.asyncDispose]() {
        hns.isAway = false;
        await stand(node, pods);
      },
    };
  },
};

const networkGone: Fault = {
  name: "the HNS network and its endpoints are gone",
  on,
  refusals: { ...remade, ADD: [11, 102] },
  interrupts: true,
  strike: async (node, pods) => {
    const { hns } = windowsOf(node).stubs;
    hns.restart();
    hns.store.networks.clear();
    return { what: "the network", lost: [], [Symbol.asyncDispose]: () => stand(node, pods) };
  },
};

const removed: Fault = {
  name: "somebody deletes a pod's endpoint",
  on,
  refusals: remade,
  interrupts: true,
  strike: (node, pods, random) =>
    onPod(node, pods, random, (id) => {
      const { store } = windowsOf(node).stubs.hns;
      const namespace = store.find("namespace", String(store.find("endpoint", id)?.["HostComputeNamespace"]));
      if (namespace !== undefined) namespace["Resources"] = [];
      store.endpoints.delete(id);
    }),
};

const expelled: Fault = {
  name: "a pod's endpoint says that its namespace is all zeros",
  on,
  refusals: remade,
  interrupts: true,
  strike: (node, pods, random) =>
    onPod(node, pods, random, (id) => {
      const { store } = windowsOf(node).stubs.hns;
      const endpoint = store.find("endpoint", id);
      const namespace = store.find("namespace", String(endpoint?.["HostComputeNamespace"]));
      if (namespace !== undefined) namespace["Resources"] = [];
      if (endpoint !== undefined) endpoint["HostComputeNamespace"] = zeros;
    }),
};

const namespaceGone: Fault = {
  name: "a pod's namespace is gone",
  on,
  refusals: { ADD: [4, 11, 102], CHECK: [11, 103] },
  strike: async (node, pods, random) => {
    const { store } = windowsOf(node).stubs.hns;
    const pod = pods[random(Math.max(1, pods.length))];
    if (pod !== undefined && store.find("namespace", pod.netns) !== undefined) deleteNamespace(store, pod.netns);
    return {
      what: pod?.netns ?? "nobody",
      lost: pod === undefined ? [] : [pod],
      [Symbol.asyncDispose]: async () => undefined,
    };
  },
};

/** Strikes the endpoint of one pod, and ends when the agent has made it again. */
async function onPod(
  node: StressNode,
  pods: readonly StressPod[],
  random: (bound: number) => number,
  strike: (id: string) => void,
): ReturnType<Fault["strike"]> {
  const windows = windowsOf(node);
  const pod = pods[random(Math.max(1, pods.length))];
  const lease = (await windows.leases()).find(({ owner }) => owner.sandboxId === pod?.containerId);
  const address = lease === undefined ? "" : formatIp(lease.address.ip);
  const [id] =
    [...windows.stubs.hns.store.endpoints].find(([, document]) => JSON.stringify(document).includes(`"${address}"`)) ??
    [];
  if (id !== undefined) strike(id);
  return { what: address || "nobody", lost: [], [Symbol.asyncDispose]: () => stand(node, pods) };
}

const standsWithinMs = 40_000;

/** Until those of the pods stand that still have a namespace and a lease. */
async function stand(node: StressNode, pods: readonly StressPod[]): Promise<void> {
  const windows = windowsOf(node);
  for (const until = performance.now() + standsWithinMs; performance.now() < until; await Bun.sleep(100)) {
    const leased = (await windows.leases()).filter(({ state }) => state === "allocated");
    const living = pods.filter(({ containerId }) => leased.some(({ owner }) => owner.sandboxId === containerId));
    const standing = await Promise.all(living.map((pod) => node.reaches(pod)));
    if (standing.every(Boolean)) return;
  }
}

/** A call that is being made when the agent dies has an effect, or has none. */
const killedInside: Fault = {
  name: "the agent is killed inside a call of HNS",
  on,
  endsAgent: true,
  refusals: unanswered,
  strike: async (node, _, random) => {
    const effectFirst = random(2) === 0;
    const call = calls[random(calls.length)] ?? calls[0];
    using hang = windowsOf(node).stubs.hns.fault({ call, effectFirst, times: 1, holdMs: "until released" });
    // Where nobody calls it, the agent is killed all the same.
    await Promise.race([hang.hit(), Bun.sleep(2_000)]).catch(() => undefined);
    await node.endAgent("SIGKILL");
    const what = `${call}${effectFirst ? ", done" : ""}${hang.hits === 0 ? ", which nobody made" : ""}`;
    return { what, lost: [], [Symbol.asyncDispose]: () => node.startAgent() };
  },
};

const pluginsKilled: Fault = {
  name: "plugins are killed at any moment of their lives",
  on,
  refusals: { ADD: [11], CHECK: [11, 103] },
  killsPlugins: true,
  strike: async (node, _, random) => {
    if (!(node instanceof WindowsStressNode)) throw new Error("Cannot kill plugins: wanted a Windows node");
    node.onPlugin = (plugin) => {
      if (random(2) === 0) setTimeout(() => plugin.kill("SIGKILL"), random(400));
    };
    return {
      what: "every second plugin",
      lost: [],
      async [Symbol.asyncDispose]() {
        node.onPlugin = () => undefined;
      },
    };
  },
};

export const hnsFaults: readonly Fault[] = [
  hangs,
  hangsAlways,
  hangsAfter,
  fails,
  loses,
  slow,
  pretends,
  away,
  restarted,
  networkGone,
  removed,
  expelled,
  namespaceGone,
  killedInside,
  pluginsKilled,
];
