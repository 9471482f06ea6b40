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
 * Reads the documents that HNS answers. Missing or wrongly typed fields are empty, because versions of HNS differ, and
 * one strange object must not hide all others. Each reader answers `undefined` where there is no identifier.
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

/** An exact match, else ignoring case: V1 and V2 spell `Id` and `ID`. */
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

/** GUIDs, in our form everywhere: lower case, without braces. HNS writes either case. */

const pattern = /^\{?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\}?$/i;

/** All zeros: whoever is asked to make an object of this identifier chooses one. */
export const noGuid = "00000000-0000-0000-0000-000000000000";

/** `undefined` where the text is none. */
export const parseGuid = (text: string): string | undefined => pattern.exec(text)?.[1]?.toLowerCase();

/** The 16 bytes of Windows' structure: the first three groups are numbers, lowest byte first. @throws where the text is none */
export function guidBytes(text: string): Uint8Array<ArrayBuffer> {
  const guid = parseGuid(text);
  if (guid === undefined) throw new Error(`Cannot take "${text}" for an identifier: it is none, wanted a GUID`);
  const digits = guid.replaceAll("-", "");
  // A buffer of its own keeps its address.
  const bytes = new Uint8Array(new ArrayBuffer(16));
  for (let i = 0; i < 16; i++) bytes[i] = Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16);
  bytes.subarray(0, 4).reverse();
  bytes.subarray(4, 6).reverse();
  bytes.subarray(6, 8).reverse();
  return bytes;
}
