import type { Endpoint, ServicePort } from "../../agent/datapath/services.ts";
import { type Ip, parseIp } from "../../shared/net/ip.ts";

type Changes = Partial<Omit<ServicePort, "clusterIp" | "externalIps" | "ingressIps">> & {
  readonly clusterIp?: string | Ip;
  readonly externalIps?: readonly string[];
  readonly ingressIps?: readonly string[];
  /** Who answers everywhere, unless `internal`, `external` or `cluster` say something else. */
  readonly endpoints?: readonly Endpoint[];
};

const ipOf = (given: string | Ip): Ip => {
  const ip = typeof given === "string" ? parseIp(given) : given;
  if (ip === undefined) throw new Error(`"${given}" is no address`);
  return ip;
};

/** A service port with a cluster IP, without endpoints, but for what `changes` say. */
export function servicePort({ endpoints = [], clusterIp = "10.96.0.10", ...changes }: Changes = {}): ServicePort {
  const { externalIps = [], ingressIps = [], ...others } = changes;
  return {
    key: "default/web:http",
    protocol: "tcp",
    port: 80,
    internal: endpoints,
    external: endpoints,
    cluster: endpoints,
    keepsClient: false,
    preservesDestination: false,
    ...others,
    clusterIp: ipOf(clusterIp),
    externalIps: externalIps.map(ipOf),
    ingressIps: ingressIps.map(ipOf),
  };
}

export const endpointAt = (ip: string | Ip, port = 8080, weight = 100, isLocal = false): Endpoint => ({
  ip: ipOf(ip),
  port,
  weight,
  isLocal,
});
