import type { Cidr, Ip } from "../../shared/net/ip.ts";

export const protocols = ["tcp", "udp", "sctp"] as const;

/** Who serves one port of a service. */
export interface Endpoint {
  readonly ip: Ip;
  readonly port: number;
  /** Its share among the others'; 1 to 65535. */
  readonly weight: number;
  /** A pod of this node, or the node itself. */
  readonly isLocal: boolean;
}

/**
 * What this node has to do for one port of a service, in one family. Readiness, termination, topology and traffic
 * policies have already been decided. Never changed: a port that says something else is another object, so that a data
 * path sees by identity which are as before.
 */
export interface ServicePort {
  /** `namespace/name:port`, with `/6` behind it for the IPv6 part of a service of both families; unique. */
  readonly key: string;
  readonly protocol: (typeof protocols)[number];
  /** Of the cluster IP, the external IPs and the load balancer's. */
  readonly port: number;
  readonly clusterIp: Ip;
  /** Absent: the service has none. */
  readonly nodePort?: number;
  /** `spec.externalIPs` and `status.loadBalancer.ingress` (with `ipMode: VIP` only), of this family. */
  readonly externalIps: readonly Ip[];
  readonly ingressIps: readonly Ip[];
  /** Who may come to the load balancer's addresses; absent: anybody. */
  readonly sourceRanges?: readonly Cidr[];
  /** Seconds that a client keeps its endpoint (`ClientIP`); absent: each connection is chosen anew. */
  readonly affinitySeconds?: number;
  /** Who answers at the cluster IP (`internalTrafficPolicy` applied). */
  readonly internal: readonly Endpoint[];
  /** Who answers at the other addresses what comes from outside of the cluster (`externalTrafficPolicy` applied). */
  readonly external: readonly Endpoint[];
  /** Who answers at the other addresses what comes from pods and from the node itself: never cut down by a policy. */
  readonly cluster: readonly Endpoint[];
  /** `externalTrafficPolicy: Local`: whoever comes from outside keeps its address. */
  readonly keepsClient: boolean;
  /** Asked by load balancers (`spec.healthCheckNodePort`). */
  readonly healthCheckNodePort?: number;
  /** Annotation `preserve-destination`, of Windows alone: endpoints answer to the load balancer's address itself. */
  readonly preservesDestination: boolean;
}

/** A service port that is not, or not wholly, in force; others are not concerned. */
export interface RefusedService {
  readonly key: string;
  readonly reason: string;
}

/** The part of a data path that balances services. */
export interface ServiceProxy {
  /**
   * Puts exactly these in force, whatever was before (also by an earlier process), and answers when they are. The cost
   * is that of what changed. No service loses a packet by the change of another; none is gone while it changes itself.
   * Where an endpoint of UDP goes, its connections go too.
   * @param signal a newer state waits: stop after the present step, and resolve; the next call continues
   * @returns those that could not be put in force
   * @throws {CniError} 11 where nothing can be changed now (switch, kernel or HNS away); to be called again then
   */
  apply(wanted: ReadonlyMap<string, ServicePort>, signal: AbortSignal): Promise<readonly RefusedService[]>;
  /** Differences between what is wanted and what is in force, in sentences; none where all is as wanted. */
  differences(): Promise<readonly string[]>;
  /** For status, in one sentence: what this data path makes of services, and what it can. */
  readonly summary?: string;
}
