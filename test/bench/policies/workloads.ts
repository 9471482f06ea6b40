import type { ApiObject } from "../../../shared/kubernetes/mod.ts";
import { random } from "../../support/random.ts";

/** Objects of a cluster as the API server has them, in the sizes that Antrea publishes figures for (its scale tests). */
export interface Workload {
  readonly name: string;
  namespaces(): Generator<ApiObject>;
  pods(): Generator<ApiObject>;
  policies(): Generator<ApiObject>;
}

type Labels = Readonly<Record<string, string>>;

const nodes = 1_000;

/** Pods have random nodes, and an address each. */
export class PodMaker {
  readonly #random = random(1);
  #made = 0;

  make(namespace: string, name: string, labels: Labels): ApiObject {
    const i = this.#made++;
    return {
      metadata: { namespace, name, uid: `pod-${i}`, labels },
      spec: { nodeName: `node-${this.#random(nodes)}`, containers: [{ ports: [{ name: "web", containerPort: 80 }] }] },
      status: { phase: "Running", podIPs: [{ ip: `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}` }] },
    };
  }
}

const namespaceOf = (name: string, labels: Labels): ApiObject => ({ metadata: { name, uid: name, labels } });

/** One that isolates in both directions; with `from` it lets those in. */
export function policyOf(namespace: string, name: string, matchLabels: Labels, from?: ApiObject): ApiObject {
  return {
    metadata: { namespace, name, uid: `${namespace}-${name}`, generation: 1 },
    spec: {
      podSelector: { matchLabels },
      policyTypes: ["Ingress", "Egress"],
      ...(from === undefined ? {} : { ingress: [{ from: [from] }] }),
    },
  };
}

const own = (matchLabels: Labels): ApiObject => ({ podSelector: { matchLabels } });

function* times<T>(count: number, make: (i: number) => Iterable<T>): Generator<T> {
  for (let i = 0; i < count; i++) yield* make(i);
}

/** Three policies and four pods in each namespace: 25,000 namespaces are 75,000 and 100,000. */
export const smallNamespaces = (count: number): Workload => ({
  name: `${count} namespaces`,
  namespaces: () => times(count, (i) => [namespaceOf(`ns-${i}`, { app: `ns-${i}` })]),
  pods() {
    const maker = new PodMaker();
    return times(count, (i) =>
      [1, 1, 2, 2].map((app, j) => maker.make(`ns-${i}`, `pod-${j}`, { [`app-${app}`]: `scale-${app}` })),
    );
  },
  policies: () =>
    times(count, (i) => [
      policyOf(`ns-${i}`, "default-deny-all", {}),
      ...[1, 2].map((app) => {
        const labels = { [`app-${app}`]: `scale-${app}` };
        return policyOf(`ns-${i}`, `np-${app}`, labels, own(labels));
      }),
    ]),
});

/** 101 policies and 1,000 pods in each namespace. */
export const largeNamespaces = (count: number): Workload => ({
  name: `${count} large namespaces`,
  namespaces: () => times(count, (i) => [namespaceOf(`ns-${i}`, { app: `ns-${i}` })]),
  pods() {
    const maker = new PodMaker();
    return times(count, (i) =>
      times(1_000, (j) => [maker.make(`ns-${i}`, `pod-${j}`, { [`app-${j % 100}`]: `scale-${j % 100}` })]),
    );
  },
  policies: () =>
    times(count, (i) => [
      policyOf(`ns-${i}`, "default-deny-all", {}),
      ...times(100, (j) => {
        const labels = { [`app-${j}`]: `scale-${j}` };
        return [policyOf(`ns-${i}`, `np-${j}`, labels, own(labels))];
      }),
    ]),
});

/** One namespace, in which each policy has all pods on both sides. */
export const oneNamespace = (count: number): Workload => ({
  name: `one namespace, ${count} equal policies and pods`,
  namespaces: () => times(1, () => [namespaceOf("ns", { app: "ns" })]),
  pods() {
    const maker = new PodMaker();
    return times(count, (i) => [maker.make("ns", `pod-${i}`, { app: "scale" })]);
  },
  policies: () => times(count, (i) => [policyOf("ns", `np-${i}`, { app: "scale" }, own({ app: "scale" }))]),
});

/** One namespace, in which each policy has a pod of its own on both sides. */
export const policyPerPod = (count: number): Workload => ({
  name: `one namespace, ${count} pods with a policy each`,
  namespaces: () => times(1, () => [namespaceOf("ns", { app: "ns" })]),
  pods() {
    const maker = new PodMaker();
    return times(count, (i) => [maker.make("ns", `pod-${i}`, { app: `scale-${i}` })]);
  },
  policies: () =>
    times(count, (i) => [policyOf("ns", `np-${i}`, { app: `scale-${i}` }, own({ app: `scale-${i ^ 1}` }))]),
});

/** 100 pods and ten policies in each namespace; the peers of each are in a hundredth of all namespaces. */
export const acrossNamespaces = (count: number): Workload => ({
  name: `${count} namespaces with peers in others`,
  namespaces: () => times(count, (i) => [namespaceOf(`ns-${i}`, { company: `company-${i % 100}` })]),
  pods() {
    const maker = new PodMaker();
    return times(count, (i) => times(100, (j) => [maker.make(`ns-${i}`, `pod-${j}`, { app: `scale-${j % 10}` })]));
  },
  policies: () =>
    times(count, (i) =>
      times(10, (j) => {
        const labels = { app: `scale-${j}` };
        const namespaceSelector = { matchLabels: { company: `company-${i % 100}` } };
        return [policyOf(`ns-${i}`, `np-${j}`, labels, { namespaceSelector, ...own(labels) })];
      }),
    ),
});
