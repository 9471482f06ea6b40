import type { Endpoint, ServicePort } from "../../agent/datapath/services.ts";
import { type Cidr, contains, type Family, formatIp, parseIp } from "../../shared/net/ip.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";
import { gatewayAddress, nodeAddress, outside, type ServiceNode } from "./service-node.ts";

/** Who asks for a service. */
export const clients = ["pod", "node", "outside"] as const;
export type Client = (typeof clients)[number];
/** At which of its addresses. */
export const places = ["clusterIp", "external", "ingress", "nodePort"] as const;
export type PlaceName = (typeof places)[number];

/** The last of the node's pods asks. */
export const askingPod = 3;

export const namespaceOf = (node: ServiceNode, client: Client): NetworkNamespace => {
  if (client === "pod") return node.pod(askingPod).namespace;
  return client === "node" ? node.namespace : node.outside;
};

/** As whom a pod of this node sees them, where it answers. */
export const seenAs = (node: ServiceNode, client: Client, family: Family): string => {
  if (client === "pod") return node.pod(askingPod)[family];
  return client === "node" ? gatewayAddress[family] : outside[family];
};

/** Address and port of a place that the service has. */
export function addressOf(service: ServicePort, place: PlaceName): readonly [string, number] {
  const { clusterIp, port, nodePort = 0, externalIps, ingressIps } = service;
  if (place === "nodePort") return [nodeAddress[clusterIp.family], nodePort];
  const ip = { clusterIp, external: externalIps[0], ingress: ingressIps[0] }[place];
  return [ip === undefined ? "" : formatIp(ip), port];
}

/** What whoever asks comes to: one of these endpoints, a refusal, or nothing. */
export type Outcome = { readonly t: "one of"; readonly ips: readonly string[] } | { readonly t: "refused" | "silent" };

/** Written from what Kubernetes says of services, and not from flows. */
export function outcomeOf(service: ServicePort, place: PlaceName, client: Client): Outcome {
  const { internal, cluster, external, sourceRanges } = service;
  if (cluster.length === 0) {
    // The ranges are asked first where they are asked at all, and only the node's own kernel refuses before.
    const isClosed = place === "ingress" && client === "pod" && !mayCome(service, client, sourceRanges);
    return { t: isClosed ? "silent" : "refused" };
  }
  if (place === "ingress" && !mayCome(service, client, sourceRanges)) return { t: "silent" };
  const list: readonly Endpoint[] = place === "clusterIp" ? internal : client === "outside" ? external : cluster;
  if (list.length === 0) return { t: "silent" };
  return { t: "one of", ips: list.map(({ ip }) => formatIp(ip)) };
}

function mayCome({ clusterIp: { family } }: ServicePort, client: Client, ranges: readonly Cidr[] | undefined): boolean {
  if (ranges === undefined) return true;
  const own = {
    pod: [podAddress[family]],
    node: [gatewayAddress[family], nodeAddress[family]],
    outside: [outside[family]],
  };
  return ranges.some((range) => own[client].some((text) => contains(range, parseIp(text)!)));
}

const podAddress = { 4: "10.10.1.5", 6: "fd00:10:1::5" } as const;

/** How a TCP connection begins. */
export async function greeting(
  namespace: NetworkNamespace,
  [hostname, port]: readonly [string, number],
  patienceMs: number,
): Promise<"answered" | "refused" | "silent"> {
  const { promise, resolve } = Promise.withResolvers<"answered" | "refused" | "silent">();
  const timer = setTimeout(() => resolve("silent"), patienceMs);
  const connecting = namespace.within(() =>
    Bun.connect({
      hostname,
      port,
      socket: {
        open: () => resolve("answered"),
        data: () => undefined,
        error: () => resolve("refused"),
        connectError: () => resolve("refused"),
      },
    }),
  );
  connecting.catch(() => resolve("refused"));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    void connecting.then((socket) => socket.terminate()).catch(() => undefined);
  }
}
