import type { ApiObject } from "../../shared/kubernetes/mod.ts";

/** Services and EndpointSlices as the API server has them. */

export const thisNode = "here";

interface Meta {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const metadata = (name: string, more: Meta): ApiObject => ({
  ...{ namespace: "x", name, uid: `uid-${name}`, resourceVersion: "1" },
  ...more,
});

/** `x/web` at 10.96.0.1, port 80, unless `spec` says otherwise. */
export const serviceObject = (
  spec: ApiObject = {},
  ingress: readonly ApiObject[] = [],
  more: Meta = {},
): ApiObject => ({
  metadata: metadata("web", more),
  spec: { type: "ClusterIP", clusterIPs: ["10.96.0.1"], ports: [{ port: 80, protocol: "TCP" }], ...spec },
  status: { loadBalancer: { ingress } },
});

/** A slice of `x/web` at port 8080, of the family of its first address. */
export const sliceObject = (endpoints: readonly ApiObject[], more: ApiObject = {}, name = "web-1"): ApiObject => ({
  metadata: metadata(name, { labels: { "kubernetes.io/service-name": "web" } }),
  addressType: String(endpoints[0]?.["addresses"]).includes(":") ? "IPv6" : "IPv4",
  endpoints,
  ports: [{ port: 8080, protocol: "TCP" }],
  ...more,
});

const states = {
  ready: { ready: true, serving: true, terminating: false },
  unready: { ready: false, serving: false, terminating: false },
  draining: { ready: false, serving: true, terminating: true },
  dead: { ready: false, serving: false, terminating: true },
  unsaid: {},
} as const;

export interface EndpointChoice {
  readonly on?: string;
  readonly state?: keyof typeof states;
  readonly zones?: readonly string[];
  readonly nodes?: readonly string[];
}

const named = (names: readonly string[]): ApiObject[] => names.map((name) => ({ name }));

export const endpointObject = (address: string, choice: EndpointChoice = {}): ApiObject => {
  const { on: nodeName = "there", state = "ready", zones, nodes } = choice;
  const hints = {
    ...(zones === undefined ? {} : { forZones: named(zones) }),
    ...(nodes === undefined ? {} : { forNodes: named(nodes) }),
  };
  return { addresses: [address], conditions: states[state], nodeName, hints };
};
