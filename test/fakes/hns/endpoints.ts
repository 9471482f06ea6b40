import { checkAcls } from "./acls.ts";
import {
  checkPolicies,
  type Document,
  ipv4,
  isDegraded,
  isV2,
  listOf,
  objectOf,
  prefixOf,
  sameGuid,
  textOf,
} from "./documents.ts";
import { changePolicies } from "./networks.ts";
import { hresult, Refusal } from "./refusal.ts";
import { addressPlace, type HnsStore } from "./store.ts";
import { endpointFromV1 } from "./version-1.ts";

const macPattern = /^([0-9A-F]{2}-){5}[0-9A-F]{2}$/i;

/**
 * Creates an endpoint from a document of either version.
 * @param networkId of the handle that V2 is given; V1 has it in the document only
 * @returns its identifier
 */
export function createEndpoint(
  store: HnsStore,
  networkId: string | undefined,
  asked: string,
  settings: Document,
): string {
  const document = isV2(settings) ? structuredClone(settings) : endpointFromV1(settings);
  const named = textOf(document, "HostComputeNetwork");
  if (named === "") throw new Refusal(hresult.invalidEndpoint, "The endpoint names no network.");
  if (networkId !== undefined && !sameGuid(named, networkId)) {
    throw new Refusal(hresult.invalidEndpoint, "The endpoint names another network than the call.");
  }
  const network = store.get("network", named);
  const id = store.newId("endpoint", asked === "" ? textOf(settings, "ID") : asked);
  checkPolicies(document, "endpoint");
  checkAcls(document);
  const mac = textOf(document, "MacAddress");
  if (mac !== "" && !macPattern.test(mac)) throw new Refusal(hresult.invalidEndpoint, `Invalid MAC address ${mac}.`);
  for (const route of listOf(document, "Routes")) checkRoute(route);
  const isRemote = (Number(document["Flags"] ?? 0) & 1) !== 0;
  const addresses = isRemote ? remoteAddresses(store, network, document) : placedAddresses(store, network, document);
  store.endpoints.set(id, {
    ...document,
    ID: id,
    HostComputeNetwork: textOf(network, "ID"),
    HostComputeNamespace: "",
    IpConfigurations: addresses,
    MacAddress: mac === "" ? newMac(store) : mac.toUpperCase(),
    Health: { LastErrorCode: isDegraded(document) ? hresult.degradedOperation : 0 },
    V1: { State: 1, SharedContainers: [] },
  });
  return id;
}

function checkRoute(route: Document): void {
  const [hop, destination] = [textOf(route, "NextHop"), textOf(route, "DestinationPrefix")];
  if (hop === "" || destination === "")
    throw new Refusal(hresult.invalidEndpoint, "A route has no next hop or prefix.");
  if (destination.includes(":")) return;
  ipv4(hop);
  prefixOf(destination);
}

/** Each address is one of the network's, not its gateway, and of nobody else; without any the network chooses. */
function placedAddresses(store: HnsStore, network: Document, document: Document): Document[] {
  const subnets = listOf(network, "Ipams").flatMap((ipam) => listOf(ipam, "Subnets"));
  const given = listOf(document, "IpConfigurations");
  const isFree = (address: string): boolean => isFreeIn(store, network, address);
  const wanted = given.length > 0 ? given : [{ IpAddress: chosen(subnets, isFree) }];
  return wanted.map((entry) => {
    const address = textOf(entry, "IpAddress");
    if (address.includes(":")) return entry;
    const value = ipv4(address);
    const subnet = subnets
      .filter((candidate) => !textOf(candidate, "IpAddressPrefix").includes(":"))
      .map((candidate) => ({ candidate, prefix: prefixOf(textOf(candidate, "IpAddressPrefix")) }))
      .find(({ prefix }) => value >= prefix.first && value <= prefix.last);
    if (subnet === undefined) throw new Refusal(hresult.invalidIp, `${address} is outside of the network's subnets.`);
    const gateway = textOf(listOf(subnet.candidate, "Routes")[0] ?? {}, "NextHop");
    if (address === gateway || value === subnet.prefix.first || value === subnet.prefix.last) {
      throw new Refusal(hresult.addressInvalidOrReserved, `${address} is reserved.`);
    }
    if (!isFree(address)) throw new Refusal(hresult.portAlreadyExists, `${address} is in use.`);
    return { IpAddress: address, PrefixLength: entry["PrefixLength"] ?? subnet.prefix.length };
  });
}

/** Of another node: anywhere, and of nobody else in the network. */
function remoteAddresses(store: HnsStore, network: Document, document: Document): Document[] {
  const given = listOf(document, "IpConfigurations");
  if (given.length === 0) throw new Refusal(hresult.invalidEndpoint, "A remote endpoint needs an address.");
  for (const address of given.map((entry) => textOf(entry, "IpAddress"))) {
    if (!address.includes(":")) ipv4(address);
    if (!isFreeIn(store, network, address)) throw new Refusal(hresult.portAlreadyExists, `${address} is in use.`);
  }
  return given;
}

const isFreeIn = (store: HnsStore, network: Document, address: string): boolean =>
  store.endpoints.holders(addressPlace(textOf(network, "ID"), address)).size === 0;

function chosen(subnets: readonly Document[], isFree: (address: string) => boolean): string {
  const { first, last } = prefixOf(textOf(subnets[0] ?? {}, "IpAddressPrefix"));
  for (let value = first + 2; value < last; value++) {
    const address = [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
    if (isFree(address)) return address;
  }
  throw new Refusal(hresult.addressInvalidOrReserved, "The network has no address left.");
}

let macs = 0;
function newMac(store: HnsStore): string {
  macs += 1;
  const octets = [0x00, 0x15, 0x5d, macs >> 16, (macs >> 8) & 255, macs & 255];
  const mac = octets.map((octet) => octet.toString(16).padStart(2, "0").toUpperCase()).join("-");
  return [...store.endpoints.values()].some((other) => textOf(other, "MacAddress") === mac) ? newMac(store) : mac;
}

/** One change of an endpoint, as HcnModifyEndpoint takes it. */
export function modifyEndpoint(endpoint: Document, request: Document): void {
  if (textOf(request, "ResourceType") !== "Policy") {
    throw new Refusal(hresult.requestUnsupported, "The request is not supported.");
  }
  const settings = objectOf(request, "Settings");
  checkPolicies(settings, "endpoint");
  checkAcls(settings);
  changePolicies(endpoint, textOf(request, "RequestType"), listOf(settings, "Policies"));
}

/** One that stands in a namespace leaves it. */
export function deleteEndpoint(store: HnsStore, id: string): void {
  const endpoint = store.get("endpoint", id);
  const namespace = store.find("namespace", textOf(endpoint, "HostComputeNamespace"));
  if (namespace !== undefined) removeResource(namespace, "Endpoint", id);
  store.endpoints.delete(id.toUpperCase());
}

export function removeResource(namespace: Document, type: string, id: string): void {
  namespace["Resources"] = listOf(namespace, "Resources").filter(
    (entry) => entry["Type"] !== type || !sameGuid(textOf(objectOf(entry, "Data"), "ID"), id),
  );
}
