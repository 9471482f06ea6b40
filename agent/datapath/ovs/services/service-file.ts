import type { Logger } from "../../../../shared/log.ts";
import { formatIp, type Ip, parseIp } from "../../../../shared/net/ip.ts";
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
} from "../../../../shared/schema/mod.ts";
import { FollowedFile } from "../../../config/followed-file.ts";
import { maxEndpoints, protocols, type Service, type ServiceSource } from "./service.ts";

/** Ten thousand services with ten endpoints each. */
const maxBytes = 4 * 1024 * 1024;

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
  // The longest time of a learned flow, a field of 16 bits; Kubernetes' default is 10800.
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

/** Reads the text of such a file, YAML or JSON; `file` is for the messages only. */
export function readServices(given: string, file: string): ReadDocument<ReadonlyMap<string, Service>> {
  const read = readDocument(given, file, serviceFileSchema, checkTogether);
  if (read.t === "wrong") return read;
  return { t: "ok", value: new Map(read.value.services.map(({ name, ...rest }) => [name, { key: name, ...rest }])) };
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

/**
 * Follows a file of services. An invalid file is logged with its faults and changes nothing. Disposing ends it.
 * @param intervalMs interval of checking the file; default: 250
 */
export function openServiceFile(path: string, logger: Logger, intervalMs?: number): ServiceSource {
  return new FollowedFile({
    path,
    what: "services",
    maxBytes,
    read: (given) => readServices(given, path),
    logger,
    ...(intervalMs === undefined ? {} : { intervalMs }),
  });
}
