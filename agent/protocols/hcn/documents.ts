import { parseGuid } from "./guid.ts";
import type {
  HcnAddress,
  HcnDocument,
  HcnEndpoint,
  HcnLoadBalancer,
  HcnNamespace,
  HcnNetwork,
  HcnSubnet,
} from "./hcn.ts";

/**
 * Reads the documents that HNS answers. What is missing or of another type is empty: versions of HNS differ in what
 * they tell, and one strange object must not hide all others. Each reader answers `undefined` where there is no identifier.
 */
export function readNetwork(document: HcnDocument): HcnNetwork | undefined {
  const id = guidAt(document, "ID");
  if (id === undefined) return undefined;
  const ipams = listAt(document, "Ipams");
  const subnets = ipams.flatMap((ipam) => listAt(ipam, "Subnets")).map(readSubnet);
  return { id, name: textAt(document, "Name"), type: textAt(document, "Type"), subnets, document };
}

export function readEndpoint(document: HcnDocument): HcnEndpoint | undefined {
  const id = guidAt(document, "ID");
  if (id === undefined) return undefined;
  return {
    id,
    name: textAt(document, "Name"),
    networkId: guidAt(document, "HostComputeNetwork") ?? guidAt(document, "VirtualNetwork") ?? "",
    namespaceId: namespaceOf(document),
    addresses: addressesOf(document),
    mac: textAt(document, "MacAddress"),
    isRemote: (numberAt(document, "Flags") & remoteFlag) !== 0 || valueAt(document, "IsRemoteEndpoint") === true,
    document,
  };
}

export function readNamespace(document: HcnDocument): HcnNamespace | undefined {
  const id = guidAt(document, "ID");
  if (id === undefined) return undefined;
  const resources = listAt(document, "Resources");
  const ofType = (type: string): readonly HcnDocument[] =>
    resources
      .filter((resource) => textAt(resource, "Type").toLowerCase() === type)
      .map((resource) => objectAt(resource, "Data"));
  return {
    id,
    type: textAt(document, "Type"),
    endpointIds: ofType("endpoint").flatMap((data) => guidAt(data, "ID") ?? []),
    containerIds: ofType("container").map((data) => textAt(data, "ID")),
    document,
  };
}

export function readLoadBalancer(document: HcnDocument): HcnLoadBalancer | undefined {
  const id = guidAt(document, "ID");
  if (id === undefined) return undefined;
  const endpoints = valueAt(document, "HostComputeEndpoints");
  const texts = Array.isArray(endpoints) ? endpoints.filter((each) => typeof each === "string") : [];
  return { id, endpointIds: texts.flatMap((each) => parseGuid(each) ?? []), document };
}

const remoteFlag = 1;
const everywhere = ["0.0.0.0/0", "::/0"];

function readSubnet(subnet: HcnDocument): HcnSubnet {
  const route = listAt(subnet, "Routes").find((each) => everywhere.includes(textAt(each, "DestinationPrefix")));
  return { prefix: textAt(subnet, "IpAddressPrefix"), gateway: route === undefined ? "" : textAt(route, "NextHop") };
}

/** V2 has a list; what was made through V1 may show its own fields. */
function addressesOf(document: HcnDocument): readonly HcnAddress[] {
  const listed = listAt(document, "IpConfigurations").map((each) => ({
    address: textAt(each, "IpAddress"),
    prefixLength: numberAt(each, "PrefixLength"),
  }));
  const fromV1 = [
    { address: textAt(document, "IPAddress"), prefixLength: numberAt(document, "PrefixLength") },
    { address: textAt(document, "IPv6Address"), prefixLength: numberAt(document, "IPv6PrefixLength") },
  ];
  return [...listed, ...(listed.length === 0 ? fromV1 : [])].filter(({ address }) => address !== "");
}

/** An endpoint in no namespace says so by leaving it out, or by zeros. */
function namespaceOf(document: HcnDocument): string {
  const id = guidAt(document, "HostComputeNamespace") ?? "";
  return /^[0-]*$/.test(id) ? "" : id;
}

/** Exactly so, or in any case: V1 and V2 spell `Id` and `ID`. */
function valueAt(document: HcnDocument, key: string): unknown {
  if (Object.hasOwn(document, key)) return document[key];
  const lower = key.toLowerCase();
  const name = Object.keys(document).find((each) => each.toLowerCase() === lower);
  return name === undefined ? undefined : document[name];
}

function textAt(document: HcnDocument, key: string): string {
  const value = valueAt(document, key);
  return typeof value === "string" ? value : "";
}

function numberAt(document: HcnDocument, key: string): number {
  const value = valueAt(document, key);
  return typeof value === "number" && Number.isInteger(value) ? value : 0;
}

const guidAt = (document: HcnDocument, key: string): string | undefined => parseGuid(textAt(document, key));

function objectAt(document: HcnDocument, key: string): HcnDocument {
  const value = valueAt(document, key);
  return isDocument(value) ? value : {};
}

function listAt(document: HcnDocument, key: string): readonly HcnDocument[] {
  const value = valueAt(document, key);
  return Array.isArray(value) ? value.filter(isDocument) : [];
}

export const isDocument = (value: unknown): value is HcnDocument =>
  typeof value === "object" && value !== null && !Array.isArray(value);
