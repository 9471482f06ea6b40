import type { Endpoint, ServicePort } from "../../agent/datapath/services.ts";
import { contains, type Family, formatIp, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { endpointAt, servicePort } from "../fakes/service-port.ts";

/** Who asks for a service. */
export const clients = ["pod", "node", "outside"] as const;
export type Client = (typeof clients)[number];
/** At which of its addresses. */
export const places = ["clusterIp", "external", "ingress", "nodePort"] as const;
export type PlaceName = (typeof places)[number];

/** What whoever asks comes to: one of these endpoints, a refusal, or nothing. */
export type Outcome =
  | { readonly t: "one of"; readonly ips: readonly string[] }
  | { readonly t: "refused" | "silent" | "refused or silent" };

/** What the model has to know of those around. */
export interface ServedWorld {
  /** Who can serve. */
  readonly servers: Readonly<Record<Family, readonly { readonly ip: string; readonly isLocal: boolean }[]>>;
  /** The addresses that they may ask with. */
  readonly sources: Readonly<Record<Client, Readonly<Record<Family, readonly string[]>>>>;
}

/** Written from what Kubernetes says of services, and not from flows or rules. */
export function outcomeOf(
  { sources }: Pick<ServedWorld, "sources">,
  service: ServicePort,
  place: PlaceName,
  client: Client,
): Outcome {
  const { internal, cluster, external, sourceRanges, clusterIp } = service;
  const own = sources[client][clusterIp.family].map((text) => parseIp(text)!);
  const isClosed =
    place === "ingress" &&
    sourceRanges !== undefined &&
    !sourceRanges.some((range) => own.some((ip) => contains(range, ip)));
  // Nobody says which is asked first.
  if (cluster.length === 0) return { t: isClosed ? "refused or silent" : "refused" };
  if (isClosed) return { t: "silent" };
  const list: readonly Endpoint[] = place === "clusterIp" ? internal : client === "outside" ? external : cluster;
  if (list.length === 0) return { t: "silent" };
  return { t: "one of", ips: list.map(({ ip }) => formatIp(ip)) };
}

const addresses = {
  4: { clusterIp: "10.96.1.", externalIp: "203.0.113.", ingressIp: "203.0.113." },
  6: { clusterIp: "fd00:96::", externalIp: "fd00:113::1:", ingressIp: "fd00:113::2:" },
} as const;

/** Services of both families in turn, with node ports from 31000 on. @param below draws a number below another */
export function randomServices(
  count: number,
  below: (bound: number) => number,
  { servers, sources }: ServedWorld,
): readonly ServicePort[] {
  const some = <T>(all: readonly T[]): readonly T[] => all.filter(() => below(2) === 0);
  const ranges = Object.values(sources).flatMap((own) => [
    ...own[4].map((ip) => `${ip}/24`),
    ...own[6].map((ip) => `${ip}/64`),
  ]);
  return Array.from({ length: count }, (_, i): ServicePort => {
    const family = i % 2 === 0 ? 4 : 6;
    const all = servers[family].map(({ ip, isLocal }) => endpointAt(ip, 8080, 100, isLocal));
    const cluster = below(5) === 0 ? [] : [...new Set([...some(all), all[below(all.length)]!])];
    const local = cluster.filter(({ isLocal }) => isLocal);
    const { clusterIp, externalIp, ingressIp } = addresses[family];
    return servicePort({
      key: `random/${i}`,
      clusterIp: `${clusterIp}${i + 1}`,
      nodePort: 31_000 + i,
      externalIps: [`${externalIp}${i + 1}`],
      ingressIps: [`${ingressIp}${i + 2}`],
      port: 80 + (i % 3) * 1_000 + i,
      internal: below(3) === 0 ? local : cluster,
      external: below(3) === 0 ? local : cluster,
      cluster,
      ...(below(3) === 0 ? { sourceRanges: some([...ranges, "::/0"]).map((range) => parseCidr(range)!) } : {}),
      ...(below(3) === 0 ? { affinitySeconds: 60 } : {}),
    });
  });
}

/** Address and port of a place that the service has. @param nodeAddresses by which its node ports are reached */
export function addressOf(
  { clusterIp, port, nodePort = 0, externalIps, ingressIps }: ServicePort,
  place: PlaceName,
  nodeAddresses: Readonly<Record<Family, string>>,
): readonly [string, number] {
  if (place === "nodePort") return [nodeAddresses[clusterIp.family], nodePort];
  const ip = { clusterIp, external: externalIps[0], ingress: ingressIps[0] }[place];
  return [ip === undefined ? "" : formatIp(ip), port];
}
