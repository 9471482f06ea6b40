import { type Document, listOf, objectOf, textOf } from "./documents.ts";
import { hresult, Refusal } from "./refusal.ts";

const schemaVersion = { Major: 2, Minor: 0 };

/** Types of policies that the versions name differently; `NAT` is one of V1's ports, not a network's type. */
const policyNames: Readonly<Record<string, string>> = {
  NAT: "PortMapping",
  ROUTE: "SDNRoute",
  PA: "ProviderAddress",
  PROXY: "L4Proxy",
};
const settingNames: Readonly<Record<string, string>> = {
  ExceptionList: "Exceptions",
  VIP: "VirtualIP",
  PA: "ProviderAddress",
  VSID: "IsolationId",
};

const splitList = (text: string): readonly string[] => text.split(",").filter((entry) => entry !== "");

function policyFromV1({ Type, ...flat }: Document): Document {
  const settings = Object.entries(flat).map(([key, value]) => [settingNames[key] ?? key, value]);
  const type = String(Type);
  return { Type: policyNames[type] ?? type, Settings: Object.fromEntries(settings) };
}

/** A subnet with a prefix has to have a gateway. */
export function networkFromV1(document: Document): Document {
  const subnets = listOf(document, "Subnets").map((subnet) => {
    const gateway = textOf(subnet, "GatewayAddress");
    if (gateway === "") throw new Refusal(hresult.invalidNetwork, "The subnet has no gateway.");
    return {
      IpAddressPrefix: textOf(subnet, "AddressPrefix"),
      Routes: [{ NextHop: gateway, DestinationPrefix: "0.0.0.0/0" }],
      Policies: listOf(subnet, "Policies").map(policyFromV1),
    };
  });
  const adapter = textOf(document, "NetworkAdapterName");
  const mac = textOf(document, "SourceMac");
  return {
    Name: textOf(document, "Name"),
    Type: textOf(document, "Type"),
    Policies: [
      ...(adapter === "" ? [] : [{ Type: "NetAdapterName", Settings: { NetworkAdapterName: adapter } }]),
      ...(mac === "" ? [] : [{ Type: "SourceMacAddress", Settings: { SourceMacAddress: mac } }]),
      ...listOf(document, "Policies").map(policyFromV1),
    ],
    Ipams: [{ Type: "Static", Subnets: subnets }],
    Dns: { ServerList: splitList(textOf(document, "DNSServerList")), Search: splitList(textOf(document, "DNSSuffix")) },
    SchemaVersion: schemaVersion,
    V1: { ManagementIP: textOf(document, "ManagementIP") },
  };
}

export function endpointFromV1(document: Document): Document {
  const gateway = textOf(document, "GatewayAddress");
  const address = textOf(document, "IPAddress");
  const length = document["PrefixLength"];
  return {
    Name: textOf(document, "Name"),
    HostComputeNetwork: textOf(document, "VirtualNetwork"),
    ...(textOf(document, "MacAddress") === "" ? {} : { MacAddress: textOf(document, "MacAddress") }),
    IpConfigurations: address === "" ? [] : [{ IpAddress: address, ...(length ? { PrefixLength: length } : {}) }],
    Routes: gateway === "" ? [] : [{ NextHop: gateway, DestinationPrefix: "0.0.0.0/0" }],
    Dns: { ServerList: splitList(textOf(document, "DNSServerList")), Search: splitList(textOf(document, "DNSSuffix")) },
    Policies: listOf(document, "Policies").map(policyFromV1),
    SchemaVersion: schemaVersion,
  };
}

export function networkToV1(network: Document): Document {
  const subnets = listOf(network, "Ipams").flatMap((ipam) => listOf(ipam, "Subnets"));
  const setting = (type: string, key: string): string =>
    textOf(objectOf(listOf(network, "Policies").find((policy) => policy["Type"] === type) ?? {}, "Settings"), key);
  return {
    ...objectOf(network, "V1"),
    ID: network["ID"],
    Name: network["Name"],
    Type: network["Type"],
    NetworkAdapterName: setting("NetAdapterName", "NetworkAdapterName"),
    SourceMac: setting("SourceMacAddress", "SourceMacAddress"),
    Subnets: subnets.map((subnet) => ({
      AddressPrefix: subnet["IpAddressPrefix"],
      GatewayAddress: textOf(listOf(subnet, "Routes")[0] ?? {}, "NextHop"),
    })),
    Policies: [],
  };
}

export function endpointToV1(endpoint: Document, network: Document | undefined): Document {
  const configuration = listOf(endpoint, "IpConfigurations")[0] ?? {};
  const dns = objectOf(endpoint, "Dns");
  const joined = (key: string): string => (Array.isArray(dns[key]) ? dns[key].join(",") : "");
  return {
    ...objectOf(endpoint, "V1"),
    ID: endpoint["ID"],
    Name: endpoint["Name"],
    VirtualNetwork: endpoint["HostComputeNetwork"],
    VirtualNetworkName: network?.["Name"] ?? "",
    IPAddress: configuration["IpAddress"],
    PrefixLength: configuration["PrefixLength"],
    MacAddress: endpoint["MacAddress"],
    GatewayAddress: textOf(listOf(endpoint, "Routes")[0] ?? {}, "NextHop"),
    DNSServerList: joined("ServerList"),
    DNSSuffix: joined("Search"),
    Namespace: endpoint["HostComputeNamespace"] === "" ? undefined : { ID: endpoint["HostComputeNamespace"] },
    Policies: listOf(endpoint, "Policies").map((policy) => ({ Type: policy["Type"], ...objectOf(policy, "Settings") })),
  };
}
