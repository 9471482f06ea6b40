import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import { type BalancedEndpoint, type BalancedService, balancingService } from "../../shared/proto/daemon-services.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { type Rpc, streamingRpc } from "../../shared/server/handlers.ts";
import type { Endpoint, ServicePort } from "../datapath/services.ts";
import type { NodeServices } from "../services/mod.ts";

/** What people ask about the services of this node. */
export function balancingRpcs(balanced: () => Pick<NodeServices, "wanted" | "refusalOf"> | undefined): readonly Rpc[] {
  return [
    streamingRpc(balancingService.list, async function* (): AsyncGenerator<BalancedService, void> {
      const services = balanced();
      if (services === undefined)
        throw new RpcError(GrpcCode.failedPrecondition, "the agent balances no services: its configuration names none");
      for (const port of services.wanted.values()) yield toMessage(port, services.refusalOf(port.key) ?? "");
    }),
  ];
}

function toMessage(port: ServicePort, refused: string): BalancedService {
  const { clusterIp, externalIps, ingressIps, sourceRanges, key, protocol, keepsClient } = port;
  return {
    ...{ key, protocol, keepsClient, refused, port: port.port },
    clusterIp: formatIp(clusterIp),
    nodePort: port.nodePort ?? 0,
    externalIps: externalIps.map(formatIp),
    ingressIps: ingressIps.map(formatIp),
    restricted: sourceRanges !== undefined,
    sourceRanges: (sourceRanges ?? []).map(formatCidr),
    affinitySeconds: port.affinitySeconds ?? 0,
    healthCheckNodePort: port.healthCheckNodePort ?? 0,
    endpoints: endpointsOf(port),
  };
}

/** Each once, with all that it answers for. */
function endpointsOf({ internal, external, cluster }: ServicePort): BalancedEndpoint[] {
  const found = new Map<string, BalancedEndpoint>();
  const note = (of: readonly Endpoint[], as: Partial<BalancedEndpoint>): void => {
    for (const endpoint of of) {
      const address = placeOf(endpoint);
      const before = found.get(address) ?? {
        ...{ address, local: endpoint.isLocal },
        ...{ internal: false, external: false, cluster: false },
      };
      found.set(address, { ...before, ...as });
    }
  };
  note(cluster, { cluster: true });
  note(internal, { internal: true });
  note(external, { external: true });
  return [...found.values()];
}

const placeOf = ({ ip, port }: Endpoint): string =>
  ip.family === 6 ? `[${formatIp(ip)}]:${port}` : `${formatIp(ip)}:${port}`;
