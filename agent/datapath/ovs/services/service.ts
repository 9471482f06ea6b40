import type { Live } from "../../../../shared/async/live-value.ts";
import type { Ip } from "../../../../shared/net/ip.ts";

export const protocols = ["tcp", "udp", "sctp"] as const;

/** Of one service: their group is one message of at most 64 KiB, with some 100 bytes for each. */
export const mostEndpoints = 500;

/** One port of a service at one address. */
export interface Service {
  /** `namespace/name:port`, and the family where it has both; unique. */
  readonly key: string;
  readonly clusterIp: Ip;
  readonly protocol: (typeof protocols)[number];
  readonly port: number;
  readonly endpoints: readonly Endpoint[];
  /** Seconds that a client keeps its endpoint (Kubernetes' `ClientIP`); absent: each connection is chosen anew. */
  readonly affinitySeconds?: number;
}

export interface Endpoint {
  readonly ip: Ip;
  readonly port: number;
  /** Its share among the others'; 1 to 65535. */
  readonly weight: number;
}

/** Where services come from: by key, a whole new map with every change. */
export interface ServiceSource extends Live<ReadonlyMap<string, Service>>, AsyncDisposable {
  /** Why what is told now does not count, where that is so. */
  readonly fault?: string | undefined;
}
