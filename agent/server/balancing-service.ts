import { networkInterfaces } from "node:os";
import { formatCidr, formatIp, type Ip, parseIp, sameIp } from "../../shared/net/ip.ts";
import {
  type BalancedEndpoint,
  type BalancedService,
  balancingService,
  type TraceServiceRequest,
  type TraceServiceResponse,
} from "../../shared/proto/daemon-services.ts";
import { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
import { type Rpc, rpc, streamingRpc } from "../../shared/server/handlers.ts";
import { type Endpoint, protocols, type ServicePort } from "../datapath/services.ts";
import type { NodeServices, Sender, Traced } from "../services/mod.ts";

type Balanced = Pick<NodeServices, "wanted" | "refusalOf" | "trace">;

/** An address of a pod of this node. */
export interface PodAddress {
  readonly ip: Ip;
  /** `namespace/name`. */
  readonly pod: string;
}

/** What people ask about the services of this node. @param pods leases of now */
export function balancingRpcs(balanced: () => Balanced | undefined, pods: () => readonly PodAddress[]): readonly Rpc[] {
  const required = (): Balanced => {
    const services = balanced();
    if (services !== undefined) return services;
    throw new RpcError(GrpcCode.failedPrecondition, "the agent balances no services: its configuration names none");
  };
  return [
    streamingRpc(balancingService.list, async function* (): AsyncGenerator<BalancedService, void> {
      const services = required();
      for (const port of services.wanted.values()) yield balancedService(port, services.refusalOf(port.key) ?? "");
    }),
    rpc(balancingService.trace, async (request) => {
      const services = required();
      const nodeAddresses = ownAddresses();
      const packet = { ...readTarget(request), from: senderOf(request.sender, pods(), nodeAddresses) };
      const traced = services.trace(packet, nodeAddresses);
      const refused = traced.key === undefined ? undefined : services.refusalOf(traced.key);
      return toAnswer(traced, refused);
    }),
  ];
}

/** @throws {RpcError} */
function readTarget({ address, port, protocol: asked }: TraceServiceRequest) {
  const [ip, protocol] = [parseIp(address), protocols.find((one) => one === asked)];
  if (ip !== undefined && protocol !== undefined && port >= 1 && port <= 65_535) return { ip, port, protocol };
  throw new RpcError(GrpcCode.invalidArgument, `"${address}" with port ${port}/${asked} is nothing to ask for`);
}

/** @throws {RpcError} */
function senderOf(written: string, pods: readonly PodAddress[], nodeAddresses: readonly Ip[]): Sender {
  if (written === "host") return { t: "host", ips: nodeAddresses };
  if (written === "pod" || written === "outside") return { t: written, ips: [] };
  const address = parseIp(written);
  const own = pods.filter(({ ip, pod }) => (address === undefined ? pod === written : sameIp(ip, address)));
  if (own.length > 0) return { t: "pod", ips: own.map(({ ip }) => ip) };
  if (address === undefined) throw new RpcError(GrpcCode.notFound, `this node has no pod "${written}"`);
  const isNode = nodeAddresses.some((ip) => sameIp(ip, address));
  return { t: isNode ? "host" : "outside", ips: [address] };
}

/** Of the network that the agent stands in, which is the node's. */
const ownAddresses = (): readonly Ip[] =>
  Object.values(networkInterfaces())
    .flatMap((entries = []) => entries.filter(({ internal }) => !internal))
    .flatMap(({ address }) => parseIp(address) ?? []);

function toAnswer(
  { outcome, key = "", reasons, endpoints }: Traced,
  refused: string | undefined,
): TraceServiceResponse {
  const total = endpoints.reduce((sum, { weight }) => sum + weight, 0);
  return {
    ...{ outcome, key },
    reasons: refused === undefined ? reasons : [...reasons, `It is not in force as it is to be: ${refused}`],
    endpoints: endpoints.map((endpoint) => ({
      address: placeOf(endpoint),
      local: endpoint.isLocal,
      percent: Math.round((100 * endpoint.weight) / total),
    })),
  };
}

export function balancedService(port: ServicePort, refused: string): BalancedService {
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
