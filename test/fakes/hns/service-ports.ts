import type { Endpoint, ServicePort } from "../../../agent/datapath/services.ts";
import { featuresOf, type HcnFeatures } from "../../../agent/protocols/hcn/features.ts";
import { ip } from "./hns-node.ts";

/** What HNS of this version can do. */
export function features(version: string): HcnFeatures {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return featuresOf({ major, minor, text: version });
}

export const endpoint = (address: string, isLocal = false, targetPort = 8080): Endpoint => ({
  ip: ip(address),
  port: targetPort,
  weight: 1,
  isLocal,
});

/** A port of a service with a cluster IP alone, unless `changes` say more. */
export const port = (changes: Partial<ServicePort> = {}): ServicePort => ({
  key: "default/web:http",
  protocol: "tcp",
  port: 80,
  clusterIp: ip("10.96.0.10"),
  externalIps: [],
  ingressIps: [],
  internal: [],
  external: [],
  cluster: changes.internal ?? [],
  keepsClient: false,
  preservesDestination: false,
  ...changes,
});

/** As a `ServiceProxy` is given them. */
export const portsOf = (...ports: readonly ServicePort[]): ReadonlyMap<string, ServicePort> =>
  new Map(ports.map((one) => [one.key, one]));
