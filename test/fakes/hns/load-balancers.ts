import { type Document, isV2, listOf, objectOf, own, textOf } from "./documents.ts";
import { hresult, Refusal } from "./refusal.ts";
import type { HnsStore } from "./store.ts";

/** How the service takes changes of load balancers; versions differ. */
export type ModifyingBalancers = "works" | "answers E_NOTIMPL" | "says yes, changes nothing";

const dsrFlag = 1;
const ipv6Flag = 2;
const maxWithoutDsr = 64;

/** Creates one from a document of V2. @returns its identifier */
export function createLoadBalancer(store: HnsStore, asked: string, settings: Document): string {
  const id = store.newId("loadBalancer", asked);
  checkLoadBalancer(store, id, settings);
  store.loadBalancers.set(id, { ...structuredClone(settings), ID: id });
  return id;
}

/** Takes the whole document in place of the old one. */
export function modifyLoadBalancer(store: HnsStore, document: Document, settings: Document): void {
  if (store.modifyingBalancers === "answers E_NOTIMPL") throw new Refusal(hresult.notImplemented, "E_NOTIMPL");
  const id = textOf(document, "ID");
  checkLoadBalancer(store, id, settings);
  if (store.modifyingBalancers === "works") store.loadBalancers.set(id, { ...structuredClone(settings), ID: id });
}

function checkLoadBalancer(store: HnsStore, id: string, settings: Document): void {
  if (!isV2(settings)) throw new Refusal(hresult.invalidJson, "The load balancer has no schema version.");
  const mappings = listOf(settings, "PortMappings");
  if (mappings.length === 0) throw new Refusal(hresult.invalidPolicy, "The load balancer has no port.");
  const endpoints = endpointsOf(settings);
  for (const endpoint of endpoints) store.get("endpoint", endpoint);
  if (endpoints.length === 0) throw new Refusal(hresult.invalidArgument, "The load balancer has no endpoint.");
  if (endpoints.length > maxWithoutDsr && (Number(settings["Flags"] ?? 0) & dsrFlag) === 0)
    throw new Refusal(hresult.invalidArgument, "Invalid number of destinations.");
  const isTaken = (place: string): boolean =>
    [...store.loadBalancers.holders(place)].some((other) => other !== id.toUpperCase());
  if (placesOf(settings).some(isTaken)) throw new Refusal(hresult.portAlreadyExists, "The port already exists.");
}

export function endpointsOf(balancer: Document): readonly string[] {
  const list = own(balancer, "HostComputeEndpoints");
  return Array.isArray(list) ? list.map(String) : [];
}

/** Without any: all of the node's own, of one family. */
function vipsOf(balancer: Document): readonly string[] {
  const list = own(balancer, "FrontendVIPs");
  if (Array.isArray(list) && list.length > 0) return list.map(String);
  return [allOf((Number(balancer["Flags"] ?? 0) & ipv6Flag) !== 0)];
}

const allOf = (isIpv6: boolean): string => (isIpv6 ? "*/6" : "*");

/** What it alone has: addresses, protocols and ports. */
export const placesOf = (balancer: Document): readonly string[] =>
  listOf(balancer, "PortMappings").flatMap((mapping) =>
    vipsOf(balancer).map((vip) => `${vip} ${String(mapping["Protocol"])} ${String(mapping["ExternalPort"])}`),
  );

/** A packet that meets the load balancers. */
export interface BalancedPacket {
  readonly from: string;
  readonly fromPort: number;
  readonly to: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp";
}

/** Where it goes, and what the endpoint sees as its sender. */
export interface Destination {
  readonly to: string;
  readonly port: number;
  readonly from: string;
}

/**
 * Where a packet goes; `undefined`: no load balancer takes it. With direct server return, or where the address of the
 * client is kept, the endpoint sees the client, else the source address of the load balancer.
 * @param nodeAddresses at which load balancers without an address answer
 */
export function whereTo(
  store: HnsStore,
  packet: BalancedPacket,
  nodeAddresses: readonly string[],
): Destination | undefined {
  const number = packet.protocol === "tcp" ? 6 : 17;
  for (const balancer of store.loadBalancers.values()) {
    const vips = vipsOf(balancer);
    const all = allOf(packet.to.includes(":"));
    if (!vips.includes(packet.to) && !(vips.includes(all) && nodeAddresses.includes(packet.to))) continue;
    const mapping = listOf(balancer, "PortMappings").find(
      (each) => each["Protocol"] === number && each["ExternalPort"] === packet.port,
    );
    if (mapping === undefined) continue;
    // One that the service has lost takes no packets.
    const endpoints = endpointsOf(balancer)
      .map((id) => store.find("endpoint", id))
      .filter((endpoint) => endpoint !== undefined);
    const byClient = mapping["DistributionType"] === 2;
    const chosen = endpoints[spread(byClient ? packet.from : `${packet.from} ${packet.fromPort}`) % endpoints.length];
    if (chosen === undefined) return undefined;
    const to = addressFor(chosen, packet.to);
    const isDsr = (Number(balancer["Flags"] ?? 0) & dsrFlag) !== 0;
    return {
      to,
      port: Number(mapping["InternalPort"]),
      from: senderSeen(packet.from, to, isDsr, chosen, textOf(balancer, "SourceVIP")),
    };
  }
  return undefined;
}

/** Of the family that the packet is of. */
function addressFor(endpoint: Document, packetTo: string): string {
  const addresses = listOf(endpoint, "IpConfigurations").map((entry) => textOf(entry, "IpAddress"));
  return addresses.find((address) => address.includes(":") === packetTo.includes(":")) ?? "";
}

/** A pod that would see itself as its client could not answer: a policy of its endpoint hides it. */
function senderSeen(from: string, to: string, isDsr: boolean, endpoint: Document, sourceVip: string): string {
  if (!isDsr) return sourceVip;
  if (from !== to) return from;
  const hides = listOf(endpoint, "Policies").some((policy) => {
    const destinations = objectOf(policy, "Settings")["Destinations"];
    return policy["Type"] === "OutBoundNAT" && Array.isArray(destinations) && destinations.includes(to);
  });
  return hides ? "the node" : from;
}

/** FNV-1a. */
function spread(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}
