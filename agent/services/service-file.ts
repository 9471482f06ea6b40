import type { Logger } from "../../shared/log.ts";
import { type Cidr, contains, formatIp, type Ip, parseIp } from "../../shared/net/ip.ts";
import {
  defaulted,
  type Findings,
  type Infer,
  integer,
  list,
  object,
  oneOf,
  optional,
  type ReadDocument,
  readDocument,
  required,
  text,
  textThat,
} from "../../shared/schema/mod.ts";
import { FollowedFile } from "../config/followed-file.ts";
import { protocols, type ServicePort } from "../datapath/services.ts";
import type { ServiceSource } from "./service-source.ts";

/** Ten thousand services with ten endpoints each. */
const maxBytes = 4 * 1024 * 1024;

/** Of one service: a group of Open vSwitch is one message of at most 64 KiB, with about 100 bytes for each. */
const maxEndpoints = 500;

const address = text('an address such as "10.96.0.10" or "fd00:96::10", neither 0, loopback nor multicast', (given) => {
  const ip = parseIp(given);
  return ip !== undefined && isUnicast(ip) ? ip : undefined;
});

/** Whether it is the address of a single host. */
function isUnicast({ family, value }: Ip): boolean {
  if (family === 6) return value > 1n && value >> 120n !== 0xffn;
  const first = Number(value >> 24n);
  return first !== 0 && first !== 127 && first < 224;
}

const port = integer(1, 65_535);

const service = object({
  name: required(
    textThat('1 to 256 printable characters without blanks, such as "default/web:http"', (given) =>
      /^[\x21-\x7e]{1,256}$/.test(given),
    ),
    "of one port of a service, unique in the file",
  ),
  clusterIp: required(address, "the service's address, in `services.cidrs`"),
  protocol: required(oneOf(protocols), "of the port"),
  port: required(port, "of the service"),
  // The longest time of a flow that Open vSwitch learns, a field of 16 bits; Kubernetes' default is 10800.
  affinitySeconds: optional(
    integer(1, 65_535),
    "how long a client keeps its endpoint (`ClientIP`)",
    "each connection is chosen anew",
  ),
  endpoints: required(
    list(
      object({
        ip: required(address, "of a pod"),
        port: required(port, "of the pod"),
        weight: defaulted(integer(1, 65_535), 100, "its share among the others'"),
      }),
      0,
      maxEndpoints,
    ),
    "who serves it",
  ),
});

/** A file of services. */
export const serviceFileSchema = object({ services: required(list(service, 0, 10_000), "each port of each service") });

type WrittenService = Infer<typeof service>;

/**
 * Reads the text of such a file, YAML or JSON.
 * @param file for the messages only
 * @param podSubnets of this node: whoever has an address there is local
 */
export function readServices(
  given: string,
  file: string,
  podSubnets: readonly Cidr[],
): ReadDocument<ReadonlyMap<string, ServicePort>> {
  const read = readDocument(given, file, serviceFileSchema, checkTogether);
  if (read.t === "wrong") return read;
  return { t: "ok", value: new Map(read.value.services.map((each) => [each.name, toServicePort(each, podSubnets)])) };
}

function toServicePort(
  { name, endpoints: written, ...rest }: WrittenService,
  podSubnets: readonly Cidr[],
): ServicePort {
  const endpoints = written.map((endpoint) => ({
    ...endpoint,
    isLocal: podSubnets.some((subnet) => contains(subnet, endpoint.ip)),
  }));
  return {
    key: name,
    ...rest,
    externalIps: [],
    ingressIps: [],
    internal: endpoints,
    external: endpoints,
    cluster: endpoints,
    keepsClient: false,
    preservesDestination: false,
  };
}

/** Finds contradictions between services. */
function checkTogether({ services }: Infer<typeof serviceFileSchema>, findings: Findings): void {
  const names = new Set<string>();
  const places = new Map<string, string>();
  services.forEach(({ name, clusterIp, protocol, port, endpoints }, i) => {
    const at = ["services", i];
    if (names.has(name)) findings.add([...at, "name"], `"${name}" for the second time`);
    names.add(name);
    const place = `${protocol} ${formatIp(clusterIp)} ${port}`;
    const other = places.get(place);
    if (other !== undefined) findings.add([...at, "clusterIp"], `with protocol and port that of "${other}"`);
    places.set(place, name);
    const seen = new Set<string>();
    endpoints.forEach(({ ip, port }, k) => {
      const [path, here] = [[...at, "endpoints", k], `${formatIp(ip)} ${port}`];
      const written = (): string => findings.written([...path, "ip"]);
      if (ip.family !== clusterIp.family)
        findings.add([...path, "ip"], `${written()}, wanted IPv${clusterIp.family} as "clusterIp"`);
      if (seen.has(here)) findings.add(path, `${written()} port ${port} for the second time`);
      seen.add(here);
    });
  });
}

export interface ServiceFileOptions {
  readonly path: string;
  /** Of this node. */
  readonly podSubnets: readonly Cidr[];
  readonly logger: Logger;
  /** Between two looks at the file; absent: 250. */
  readonly intervalMs?: number;
}

/** Follows a file of services. One that is wrong is logged with its faults and changes nothing. */
export function followServiceFile({ podSubnets, ...options }: ServiceFileOptions): ServiceSource {
  let last: ReadonlyMap<string, ServicePort> = new Map();
  const read = (given: string): ReadDocument<ReadonlyMap<string, ServicePort>> => {
    const services = readServices(given, options.path, podSubnets);
    if (services.t === "ok") last = keeping(last, services.value);
    return services.t === "ok" ? { t: "ok", value: last } : services;
  };
  return new FollowedFile({ ...options, what: "services", maxBytes, read });
}

/** The same services, those that are as before as the same objects. */
function keeping(
  before: ReadonlyMap<string, ServicePort>,
  now: ReadonlyMap<string, ServicePort>,
): ReadonlyMap<string, ServicePort> {
  const kept = (service: ServicePort): ServicePort => {
    const old = before.get(service.key);
    return old !== undefined && Bun.deepEquals(old, service) ? old : service;
  };
  return new Map(Array.from(now, ([key, service]) => [key, kept(service)]));
}
