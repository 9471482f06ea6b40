import { describe, expect, test } from "vitest";
import { ip } from "../../../test/fakes/hns/hns-node.ts";
import { policiesOf, toV2 } from "./documents.ts";

describe("policies", () => {
  test.each([
    [
      { Type: "ACL", Settings: { Action: "Block" } },
      { Type: "ACL", Settings: { Action: "Block" } },
    ],
    [
      { Type: "OutBoundNAT", ExceptionList: ["10.0.0.0/8"], VIP: "10.0.0.1" },
      { Type: "OutBoundNAT", Settings: { Exceptions: ["10.0.0.0/8"], VirtualIP: "10.0.0.1" } },
    ],
    [
      { Type: "NAT", Protocol: "TCP", InternalPort: 80, ExternalPort: 8080 },
      { Type: "PortMapping", Settings: { Protocol: 6, InternalPort: 80, ExternalPort: 8080 } },
    ],
    [
      { Type: "ROUTE", DestinationPrefix: "10.96.0.0/12", NeedEncap: true },
      { Type: "SDNRoute", Settings: { DestinationPrefix: "10.96.0.0/12", NeedEncap: true } },
    ],
    [
      { Type: "PA", PA: "192.168.1.5" },
      { Type: "ProviderAddress", Settings: { ProviderAddress: "192.168.1.5" } },
    ],
    [
      { Type: "PROXY", Port: "15001", ExceptionList: ["10.96.0.0/12"], OutboundNat: true },
      { Type: "L4Proxy", Settings: { Port: "15001", Exceptions: ["10.96.0.0/12"], OutboundNAT: true } },
    ],
    [
      { Type: "QOS", MaximumOutgoingBandwidthInBytes: 7 },
      { Type: "QOS", Settings: { MaximumOutgoingBandwidthInBytes: 7 } },
    ],
  ])("%j", (given, wanted) => {
    expect(toV2(given)).toEqual(wanted);
  });

  test("of an endpoint are the exceptions of its NAT, what the configuration adds, and the pod's ports", () => {
    const hns = {
      network: "pipette",
      type: "Transparent" as const,
      nodeAddress: ip("192.168.1.5"),
      natName: "",
      ovsExtension: false,
      outboundNat: { exceptions: ["10.244.0.0/16"] },
      policies: [{ Type: "ACL", Settings: { Priority: 200 } }],
      peers: [],
    };
    const network = { name: "pods", subnet: { ip: ip("10.9.0.0"), prefix: 24 }, bridge: "br-int", hns };
    expect(
      policiesOf(network, [
        { hostPort: 8080, containerPort: 80, protocol: "tcp" },
        { hostPort: 53, containerPort: 5353, protocol: "udp" },
      ]),
    ).toEqual([
      { Type: "OutBoundNAT", Settings: { Exceptions: ["10.244.0.0/16"] } },
      { Type: "ACL", Settings: { Priority: 200 } },
      { Type: "PortMapping", Settings: { Protocol: 6, InternalPort: 80, ExternalPort: 8080 } },
      { Type: "PortMapping", Settings: { Protocol: 17, InternalPort: 5353, ExternalPort: 53 } },
    ]);
  });
});
