import { type ApiObject, listIn, mapIn, mapsIn, type Resource, textIn } from "../../../shared/kubernetes/mod.ts";
import { type Ip, parseIp } from "../../../shared/net/ip.ts";

/** Services, their endpoints and nodes, as far as a question about policies needs them. */

export interface ServicePort {
  /** Empty for a service's only port. */
  readonly name: string;
  readonly protocol: string;
  readonly port: number;
}

export interface Service {
  readonly namespace: string;
  readonly name: string;
  readonly ips: readonly Ip[];
  readonly ports: readonly ServicePort[];
}

export interface EndpointSlice {
  readonly ports: readonly ServicePort[];
  readonly endpoints: readonly { readonly ips: readonly Ip[]; readonly pod?: string }[];
}

export interface NodeObject {
  readonly name: string;
  readonly ips: readonly Ip[];
}

const ipsIn = (texts: readonly unknown[]): Ip[] =>
  texts.flatMap((text) => (typeof text === "string" ? (parseIp(text) ?? []) : []));

function portsOf(list: readonly ApiObject[]): ServicePort[] {
  return list.flatMap((entry) => {
    const { port } = entry;
    if (typeof port !== "number") return [];
    return [{ name: textIn(entry, "name") ?? "", protocol: textIn(entry, "protocol") ?? "TCP", port }];
  });
}

export const services: Resource<Service> = {
  version: "v1",
  plural: "services",
  project: (object) => {
    const [metadata, spec] = [mapIn(object, "metadata"), mapIn(object, "spec")];
    const [namespace, name] = [textIn(metadata, "namespace"), textIn(metadata, "name")];
    if (namespace === undefined || name === undefined) return undefined;
    const ips = ipsIn([...listIn(spec, "clusterIPs"), ...listIn(spec, "externalIPs")]);
    return { namespace, name, ips, ports: portsOf(mapsIn(spec, "ports")) };
  },
};

export const endpointSlices: Resource<EndpointSlice> = {
  group: "discovery.k8s.io",
  version: "v1",
  plural: "endpointslices",
  project: (object) => ({
    ports: portsOf(mapsIn(object, "ports")),
    endpoints: mapsIn(object, "endpoints")
      .filter((endpoint) => mapIn(endpoint, "conditions")["ready"] !== false)
      .map((endpoint) => {
        const target = mapIn(endpoint, "targetRef");
        const pod = target["kind"] === "Pod" ? textIn(target, "name") : undefined;
        return { ips: ipsIn(listIn(endpoint, "addresses")), ...(pod === undefined ? {} : { pod }) };
      }),
  }),
};

export const nodes: Resource<NodeObject> = {
  version: "v1",
  plural: "nodes",
  project: (object) => {
    const name = textIn(mapIn(object, "metadata"), "name");
    if (name === undefined) return undefined;
    return { name, ips: ipsIn(mapsIn(mapIn(object, "status"), "addresses").map(({ address }) => address)) };
  },
};
