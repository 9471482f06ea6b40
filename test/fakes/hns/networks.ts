import { checkPolicies, type Document, ipv4, isV2, listOf, objectOf, prefixOf, sameGuid, textOf } from "./documents.ts";
import { hresult, Refusal } from "./refusal.ts";
import type { HnsStore } from "./store.ts";
import { networkFromV1 } from "./version-1.ts";

const types = ["NAT", "ICS", "Transparent", "L2Bridge", "L2Tunnel", "Overlay", "Private", "Internal"];
const onAdapter = ["Transparent", "L2Bridge", "L2Tunnel", "Overlay"];
const leastVni = 4096;

/** Extensions that every switch has, and that of Open vSwitch. */
const extensions = ["E7C3B2F0-F3C5-48DF-AF2B-10FED6D72E7A", "EA24CD6C-D17A-4348-9190-09F0D5BE83DD"];
export const ovsExtension = "583CC151-73EC-4A6A-8B47-578297AD7623";

/** Creates a network from a document of either version. @returns its identifier */
export function createNetwork(store: HnsStore, asked: string, settings: Document): string {
  const document = isV2(settings) ? structuredClone(settings) : networkFromV1(settings);
  const id = store.newId("network", asked === "" ? textOf(settings, "ID") : asked);
  checkNetwork(store, document);
  const known = [...extensions, ovsExtension].map((Id) => ({ Id, IsEnabled: false }));
  const v1 = { Extensions: known, ...objectOf(document, "V1") };
  store.networks.set(id, { ...document, ID: id, Health: { LastErrorCode: 0 }, Flags: document["Flags"] ?? 0, V1: v1 });
  return id;
}

function checkNetwork(store: HnsStore, document: Document): void {
  const type = textOf(document, "Type");
  const name = textOf(document, "Name");
  if (!types.includes(type)) throw new Refusal(hresult.invalidNetworkType, `Invalid network type ${type}.`);
  if (name === "") throw new Refusal(hresult.invalidNetwork, "The network has no name.");
  if ([...store.networks.values()].some((other) => textOf(other, "Name") === name)) {
    throw new Refusal(hresult.networkAlreadyExists, `A network ${name} already exists.`);
  }
  checkPolicies(document, "network");
  if (onAdapter.includes(type)) checkAdapter(store, document);
  for (const ipam of listOf(document, "Ipams")) {
    for (const subnet of listOf(ipam, "Subnets")) checkSubnet(subnet, type);
  }
}

export const adapterOf = (network: Document): string =>
  textOf(
    objectOf(
      listOf(network, "Policies").find((policy) => textOf(policy, "Type") === "NetAdapterName") ?? {},
      "Settings",
    ),
    "NetworkAdapterName",
  );

function checkAdapter(store: HnsStore, document: Document): void {
  const adapter = adapterOf(document);
  if (adapter === "") throw new Refusal(hresult.invalidArgument, "A network of this type needs an adapter.");
  if (!store.adapters.has(adapter)) throw new Refusal(hresult.adapterNotFound, `The adapter ${adapter} was not found.`);
  if ([...store.networks.values()].some((other) => adapterOf(other) === adapter)) {
    throw new Refusal(hresult.invalidArgument, `The adapter ${adapter} belongs to a switch.`);
  }
}

/** A subnet with a prefix has a default route with a next hop; one of an overlay has a virtual subnet's number. */
function checkSubnet(subnet: Document, type: string): void {
  checkPolicies(subnet, "subnet");
  const prefix = textOf(subnet, "IpAddressPrefix");
  if (prefix === "") throw new Refusal(hresult.invalidNetwork, "The subnet has no prefix.");
  const routes = listOf(subnet, "Routes");
  const defaults = routes.filter((route) => ["0.0.0.0/0", "::/0"].includes(textOf(route, "DestinationPrefix")));
  if (defaults.length === 0) throw new Refusal(hresult.invalidNetwork, "The subnet has no default route.");
  if (routes.some((route) => textOf(route, "NextHop") === "")) {
    throw new Refusal(hresult.invalidNetwork, "A route has no next hop.");
  }
  if (!prefix.includes(":")) {
    const { first, last } = prefixOf(prefix);
    const gateway = ipv4(textOf(defaults[0]!, "NextHop"));
    if (gateway < first || gateway > last)
      throw new Refusal(hresult.invalidIp, "The gateway is outside of the subnet.");
  }
  if (type !== "Overlay") return;
  const vsid = listOf(subnet, "Policies").find((policy) => textOf(policy, "Type") === "VSID");
  const number = objectOf(vsid ?? {}, "Settings")["IsolationId"];
  if (typeof number !== "number" || number < leastVni) {
    throw new Refusal(hresult.invalidPolicy, "A subnet of an overlay needs a VSID from 4096 on.");
  }
}

/** One change of a network, as HcnModifyNetwork takes it. */
export function modifyNetwork(network: Document, request: Document): void {
  const settings = objectOf(request, "Settings");
  const how = textOf(request, "RequestType");
  switch (textOf(request, "ResourceType")) {
    case "Policy":
      checkPolicies(settings, "network");
      changePolicies(network, how, listOf(settings, "Policies"));
      return;
    case "DNS":
      network["Dns"] = settings;
      return;
    case "Extension":
      switchExtension(network, textOf(settings, "ExtensionID"), settings["Enable"] === true);
      return;
    default:
      throw new Refusal(hresult.requestUnsupported, "The request is not supported.");
  }
}

export function switchExtension(network: Document, id: string, isEnabled: boolean): void {
  const extension = listOf(objectOf(network, "V1"), "Extensions").find((entry) => sameGuid(textOf(entry, "Id"), id));
  if (extension === undefined) throw new Refusal(hresult.switchExtensionNotFound, "The extension was not found.");
  extension["IsEnabled"] = isEnabled;
}

export function changePolicies(document: Document, how: string, policies: readonly Document[]): void {
  const now = listOf(document, "Policies");
  const same = (a: Document, b: Document): boolean => JSON.stringify(a) === JSON.stringify(b);
  if (how === "Add") document["Policies"] = [...now, ...policies];
  else if (how === "Update") document["Policies"] = [...policies];
  else if (how === "Remove") {
    if (!policies.every((policy) => now.some((entry) => same(entry, policy)))) {
      throw new Refusal(hresult.policyNotFound, "The policy was not found.");
    }
    document["Policies"] = now.filter((entry) => !policies.some((policy) => same(entry, policy)));
  } else throw new Refusal(hresult.requestUnsupported, "The request is not supported.");
}

/** One with endpoints stays: whoever deletes it has to delete them first. */
export function deleteNetwork(store: HnsStore, id: string): void {
  store.get("network", id);
  if ([...store.endpoints.values()].some((endpoint) => sameGuid(textOf(endpoint, "HostComputeNetwork"), id))) {
    throw new Refusal(hresult.entityHasReferences, "The network has endpoints.");
  }
  store.networks.delete(id.toUpperCase());
}
