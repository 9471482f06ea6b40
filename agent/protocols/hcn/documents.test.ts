import { describe, expect, test } from "vitest";
import {
  guidBytes,
  noGuid,
  parseGuid,
  readEndpoint,
  readLoadBalancer,
  readNamespace,
  readNetwork,
} from "./documents.ts";

const upper = "0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9";
const lower = upper.toLowerCase();

describe("GUIDs", () => {
  test.each([
    [upper, lower],
    [`{${upper}}`, lower],
    ["", undefined],
    [lower.slice(1), undefined],
    [`${lower}0`, undefined],
    [lower.replaceAll("-", ""), undefined],
  ])("%j is %j", (text, guid) => expect(parseGuid(text)).toBe(guid));

  test("the first three groups stand lowest byte first", () => {
    const bytes = guidBytes("00112233-4455-6677-8899-aabbccddeeff");
    expect(Buffer.from(bytes).toString("hex")).toBe("33221100554477668899aabbccddeeff");
  });
});

describe("documents of HNS", () => {
  test("a network", () => {
    const document = {
      ID: upper,
      Name: "pipette",
      Type: "Transparent",
      Ipams: [
        {
          Type: "Static",
          Subnets: [
            {
              IpAddressPrefix: "10.10.1.0/24",
              Routes: [
                { NextHop: "10.10.1.9", DestinationPrefix: "10.11.0.0/16" },
                { NextHop: "10.10.1.1", DestinationPrefix: "0.0.0.0/0" },
              ],
            },
          ],
        },
      ],
    };
    const subnets = [{ prefix: "10.10.1.0/24", gateway: "10.10.1.1" }];
    expect(readNetwork(document)).toEqual({ id: lower, name: "pipette", type: "Transparent", subnets, document });
  });

  test("an endpoint, as V2 and as V1 spell it", () => {
    const shared = { Name: "web", MacAddress: "00-15-5D-01-02-03" };
    const v2 = {
      ...shared,
      ID: upper,
      HostComputeNetwork: `{${upper}}`,
      HostComputeNamespace: upper,
      IpConfigurations: [{ IpAddress: "10.10.1.7", PrefixLength: 24 }],
      Flags: 1,
    };
    const read = { id: lower, name: "web", networkId: lower, mac: "00-15-5D-01-02-03" };
    const addresses = [{ address: "10.10.1.7", prefixLength: 24 }];
    expect(readEndpoint(v2)).toEqual({ ...read, namespaceId: lower, addresses, isRemote: true, document: v2 });
    const v1 = { ...shared, Id: upper, VirtualNetwork: upper, IPAddress: "10.10.1.7", PrefixLength: 24 };
    expect(readEndpoint(v1)).toEqual({ ...read, namespaceId: "", addresses, isRemote: false, document: v1 });
  });

  test("zeros are no namespace", () => {
    expect(readEndpoint({ ID: upper, HostComputeNamespace: noGuid })?.namespaceId).toBe("");
  });

  test("a namespace with either kind of resource", () => {
    const document = {
      ID: upper,
      Type: "Host",
      Resources: [
        { Type: "Container", Data: { Id: "c1" } },
        { Type: "Endpoint", Data: { Id: upper } },
        { Type: "Endpoint", Data: null },
      ],
    };
    const read = { id: lower, type: "Host", endpointIds: [lower], containerIds: ["c1"], document };
    expect(readNamespace(document)).toEqual(read);
  });

  test("a load balancer", () => {
    const document = { ID: upper, HostComputeEndpoints: [upper, "x", 1] };
    expect(readLoadBalancer(document)).toEqual({ id: lower, endpointIds: [lower], document });
  });

  test("what is missing, or of another type, is empty; without an identifier there is no object", () => {
    const strange = { ID: upper, Name: 7, Type: {}, Ipams: [null, { Subnets: "x" }], IpConfigurations: {}, Flags: "1" };
    const [network, endpoint] = [readNetwork(strange), readEndpoint(strange)];
    expect(network).toEqual({ id: lower, name: "", type: "", subnets: [], document: strange });
    const empty = { name: "", networkId: "", namespaceId: "", addresses: [], mac: "", isRemote: false };
    expect(endpoint).toEqual({ id: lower, ...empty, document: strange });
    for (const read of [readNetwork, readEndpoint, readNamespace, readLoadBalancer])
      for (const ID of [undefined, 5, "", "x"]) expect(read({ ID })).toBeUndefined();
  });
});
