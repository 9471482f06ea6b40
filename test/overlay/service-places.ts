import type { ServicePort } from "../../agent/datapath/services.ts";
import type { Family } from "../../shared/net/ip.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";
import { type Client, type PlaceName, addressOf as placeOf, type ServedWorld } from "./service-model.ts";
import { gatewayAddress, nodeAddress, outside, type ServiceNode } from "./service-node.ts";

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
export const addressOf = (service: ServicePort, place: PlaceName): readonly [string, number] =>
  placeOf(service, place, nodeAddress);

/** @param node with four pods, of which the last asks */
export const worldOf = (node: ServiceNode): ServedWorld => {
  const server = (ip: string, isLocal = true) => ({ ip, isLocal });
  const servers = (family: Family) => [
    server(node.pod(0)[family]),
    server(node.pod(1)[family]),
    server(nodeAddress[family]),
    server(outside[family], false),
  ];
  const asking = node.pod(askingPod);
  return {
    servers: { 4: servers(4), 6: servers(6) },
    sources: {
      pod: { 4: [asking[4]], 6: [asking[6]] },
      node: { 4: [gatewayAddress[4], nodeAddress[4]], 6: [gatewayAddress[6], nodeAddress[6]] },
      outside: { 4: [outside[4]], 6: [outside[6]] },
    },
  };
};

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
