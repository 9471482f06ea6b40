import type { DocumentNode, DocumentService, TraceProtocol } from "../../shared/documents/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { contains, formatIp, type Ip, parseCidr, parseIp, sameIp } from "../../shared/net/ip.ts";
import { askEach, type NodeFailure } from "../ask-nodes.ts";
import type { DocumentSource, PodName } from "../document-source.ts";

/** Who sends, or receives. */
export type End =
  /** Nobody in particular. */
  | { readonly t: "any" }
  | { readonly t: "address"; readonly ips: readonly Ip[]; readonly node?: string }
  | { readonly t: "pod"; readonly name: string; readonly ips: readonly Ip[]; readonly node: string }
  | {
      readonly t: "service";
      readonly name: string;
      readonly ips: readonly Ip[];
      readonly port: number;
      readonly protocol: TraceProtocol;
      /** Nodes that have endpoints, but for the sender's. */
      readonly nodes: readonly string[];
    };

export interface FoundEnd {
  readonly end: End;
  /** Nodes that could not be asked for it. */
  readonly failures: readonly NodeFailure[];
}

export const anybody = "any";

/** There is nobody of that name. */
export class NotThere extends CniError {
  constructor(is: string) {
    super(CniCode.unknownContainer, `Cannot trace packets: ${is}`);
  }
}

/** A name alone is one of the namespace `default`. */
export function podNamed(text: string): PodName {
  const [namespace = "", name = "", ...more] = text.includes("/") ? text.split("/") : ["default", text];
  if (namespace !== "" && name !== "" && more.length === 0) return { namespace, name };
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot trace packets: "${text}" names no pod, wanted namespace/name or an address`,
  );
}

/** @throws {NotThere | CniError} */
export async function findSender(source: DocumentSource, text: string, signal: AbortSignal): Promise<FoundEnd> {
  if (text === anybody) return { end: { t: "any" }, failures: [] };
  const ip = parseIp(text);
  if (ip !== undefined) return { end: await addressEnd(source, ip, signal), failures: [] };
  return await podEnd(source, podNamed(text), signal);
}

/**
 * @param from a node that knows the services; absent: nobody is asked for these
 * @throws {NotThere | CniError}
 */
export async function findReceiver(
  source: DocumentSource,
  text: string,
  wanted: { readonly from?: string; readonly port?: number; readonly protocol?: TraceProtocol },
  signal: AbortSignal,
): Promise<FoundEnd> {
  if (text === anybody) return { end: { t: "any" }, failures: [] };
  const ip = parseIp(text);
  if (ip !== undefined) {
    const end = await addressEnd(source, ip, signal);
    // An address that no node has may be a service's.
    const isAway = end.t === "address" && end.node === undefined && wanted.from !== undefined;
    const asked = { ...wanted, from: wanted.from ?? "", ip };
    // Who does not know services does not keep an address from being asked.
    const service = isAway ? await serviceEnd(source, asked, signal).catch(() => undefined) : undefined;
    return { end: service ?? end, failures: [] };
  }
  const name = podNamed(text);
  try {
    return await podEnd(source, name, signal);
  } catch (caught) {
    if (!(caught instanceof NotThere) || wanted.from === undefined) throw caught;
    const service = await serviceEnd(source, { ...name, ...wanted, from: wanted.from }, signal);
    if (service === undefined) throw new NotThere(`there is no pod and no service "${name.namespace}/${name.name}"`);
    return { end: service, failures: [] };
  }
}

async function podEnd(source: DocumentSource, pod: PodName, signal: AbortSignal): Promise<FoundEnd> {
  const name = `${pod.namespace}/${pod.name}`;
  const place = await source.placeOf?.(pod, signal).catch(() => undefined);
  if (place === "absent") throw new NotThere(`there is no pod "${name}"`);
  if (place !== undefined) {
    const ips = place.addresses.flatMap((text) => parseIp(text) ?? []);
    if (place.hostNetwork)
      throw new NotThere(`pod "${name}" is in the host's network, where no pod's network sees its packets`);
    return { end: { t: "pod", name, ips, node: place.node }, failures: [] };
  }
  // Who may not read the pod's object asks every node.
  const { answers, failures } = await askEach(await source.nodes(signal), signal, async (node, each) => {
    const answer = await source.get(node, { kind: "pods", name }, each);
    return answer.t === "document" ? answer.document.pods : [];
  });
  for (const { node, answer } of answers)
    for (const { addresses } of answer)
      return { end: { t: "pod", name, ips: addresses.flatMap((text) => parseCidr(text)?.ip ?? []), node }, failures };
  const [failure] = failures;
  if (failure !== undefined) throw new CniError(CniCode.tryAgainLater, failure.reason);
  const where = source.isOneNode === true ? "this node has" : "there is";
  const wish = source.isOneNode === true ? ", wanted one; a pod of another node is told by its address" : "";
  throw new NotThere(`${where} no pod "${name}"${wish}`);
}

async function addressEnd(source: DocumentSource, ip: Ip, signal: AbortSignal): Promise<End> {
  const node = nodeOf(await clusterNodes(source, signal), ip);
  return { t: "address", ips: [ip], ...(node === undefined ? {} : { node }) };
}

/** The node whose pods have such addresses, or whose own it is. */
export const nodeOf = (nodes: readonly DocumentNode[], ip: Ip): string | undefined =>
  nodes.find(
    ({ subnets, addresses }) =>
      subnets.some((text) => {
        const subnet = parseCidr(text);
        return subnet !== undefined && contains(subnet, ip);
      }) ||
      addresses.some((text) => {
        const own = parseIp(text);
        return own !== undefined && sameIp(own, ip);
      }),
  )?.name;

async function clusterNodes(source: DocumentSource, signal: AbortSignal): Promise<readonly DocumentNode[]> {
  return (await source.cluster(signal)).nodes;
}

interface WantedService extends Partial<PodName> {
  readonly from: string;
  /** In place of a name. */
  readonly ip?: Ip;
  readonly port?: number;
  readonly protocol?: TraceProtocol;
}

async function serviceEnd(
  source: DocumentSource,
  wanted: WantedService,
  signal: AbortSignal,
): Promise<End | undefined> {
  const { ip, from } = wanted;
  const name = `${wanted.namespace}/${wanted.name}`;
  const answer = await source.get(from, { kind: "services", ...(ip === undefined ? { name } : {}) }, signal);
  const told = answer.t === "document" ? answer.document.services : [];
  const all = ip === undefined ? told : told.filter(({ clusterIp }) => clusterIp === formatIp(ip));
  if (all.length === 0) return undefined;
  const found = all.filter((one) => isWanted(one, wanted));
  const [service] = found;
  if (service === undefined || found.length > 1) {
    // An address is asked for as it is.
    if (ip !== undefined) return undefined;
    const ports = all.map(({ port, protocol }) => `${protocol.toLowerCase()} ${port}`).join(", ");
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot trace packets: service "${name}" has ${ports}, wanted --port with one of them`,
    );
  }
  const [clusterIp, protocol] = [parseIp(service.clusterIp), service.protocol.toLowerCase()];
  if (clusterIp === undefined || (protocol !== "tcp" && protocol !== "udp"))
    throw new NotThere(`service "${service.key}" has no address of TCP or UDP that could be asked`);
  const nodes = await clusterNodes(source, signal);
  const away = service.endpoints.filter(({ local }) => !local).flatMap(({ address }) => endpointIp(address) ?? []);
  const others = new Set(away.flatMap((one) => nodeOf(nodes, one) ?? []));
  others.delete(from);
  return { t: "service", name: service.key, ips: [clusterIp], port: service.port, protocol, nodes: [...others] };
}

const isWanted = ({ port, protocol }: DocumentService, wanted: WantedService): boolean =>
  (wanted.port === undefined || port === wanted.port) &&
  (wanted.protocol === undefined || protocol.toLowerCase() === wanted.protocol);

/** `10.1.2.3:80` or `[fd00::1]:80`. */
function endpointIp(text: string): Ip | undefined {
  const colon = text.lastIndexOf(":");
  const host = colon < 0 ? text : text.slice(0, colon);
  return parseIp(host.replace("[", "").replace("]", ""));
}

export const endText = (end: End): string =>
  end.t === "any" ? "anybody" : end.t === "address" ? end.ips.map(formatIp).join(", ") : end.name;
