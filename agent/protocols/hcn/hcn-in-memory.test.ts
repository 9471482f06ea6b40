import { describe, expect, test } from "vitest";
import { HcnInMemory } from "./hcn-in-memory.ts";
import {
  type Hcn,
  type HcnDocument,
  type HcnEndpoint,
  HcnError,
  type HcnModify,
  type HcnNamespace,
  type HcnNetwork,
  parseGuid,
} from "./mod.ts";

const namespaceId = "6f1d3f0e-7c55-4a17-9f63-0a5c3e1d2b4a";
const endpointId = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

async function withNetwork(): Promise<{ hcn: HcnInMemory; network: HcnNetwork }> {
  const hcn = new HcnInMemory();
  hcn.namespaceEndpoints.set(namespaceId, new Set());
  return { hcn, network: await hcn.createNetwork({ Name: "pipette", Type: "Transparent" }) };
}

/** What a caller of the interface may rely on. */
async function refused(call: Promise<unknown>): Promise<HcnError> {
  const caught = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(caught instanceof HcnError)) throw new Error("Expected a refusal");
  return caught;
}

describe("HNS in memory", () => {
  test("an endpoint is made, attached, listed, detached and deleted, each twice", async () => {
    const { hcn, network } = await withNetwork();
    const settings: HcnDocument = { Name: "web", IpConfigurations: [{ IpAddress: "10.9.0.2", PrefixLength: 24 }] };
    const made: HcnEndpoint = await hcn.createEndpoint(network.id, endpointId, settings);
    expect(made).toMatchObject({ id: endpointId, networkId: network.id, name: "web", namespaceId: "" });
    expect((await refused(hcn.createEndpoint(network.id, endpointId, settings))).isPresence).toBe(true);
    for (let i = 0; i < 2; i++) await hcn.attach(namespaceId, endpointId);
    expect(await hcn.endpoints()).toMatchObject([{ id: endpointId, namespaceId }]);
    const inside: HcnNamespace | undefined = await hcn.namespace(namespaceId);
    expect(inside?.endpointIds).toEqual([endpointId]);
    for (let i = 0; i < 2; i++) await hcn.detach(namespaceId, endpointId);
    for (let i = 0; i < 2; i++) await hcn.deleteEndpoint(endpointId);
    expect(await hcn.endpoint(endpointId)).toBeUndefined();
  });

  test("networks: a name is taken once, policies come and go", async () => {
    const { hcn, network } = await withNetwork();
    expect(parseGuid(network.id)).toBe(network.id);
    expect((await refused(hcn.createNetwork({ Name: "pipette" }))).hresult).toBe(0x803b0010);
    const Policies = [{ Type: "VSID", Settings: { IsolationId: 4096 } }];
    const change: HcnModify = { ResourceType: "Policy", RequestType: "Add", Settings: { Policies } };
    await hcn.modifyNetwork(network.id, change);
    expect((await hcn.network(network.id))?.document["Policies"]).toEqual(Policies);
    await hcn.modifyNetwork(network.id, { ...change, RequestType: "Remove" });
    expect((await hcn.network(network.id))?.document["Policies"]).toEqual([]);
    await hcn.deleteNetwork(network.id);
    expect(await hcn.networks()).toEqual([]);
  });

  test("what is missing is refused", async () => {
    const { hcn, network } = await withNetwork();
    expect((await refused(hcn.createEndpoint(endpointId, endpointId, {}))).hresult).toBe(0x803b0001);
    expect((await refused(hcn.attach(network.id, endpointId))).hresult).toBe(0x80070490);
    expect((await refused(hcn.attach(namespaceId, endpointId))).hresult).toBe(0x803b0002);
  });

  test("faults and hangs, with an effect and without", async () => {
    const { hcn, network } = await withNetwork();
    const typed: Hcn = hcn;
    hcn.fail("endpoints", 0x800706ba);
    expect((await refused(typed.endpoints())).isServiceAway).toBe(true);
    expect(await typed.endpoints()).toEqual([]);
    hcn.hang("createEndpoint");
    expect((await refused(typed.createEndpoint(network.id, endpointId, {}))).timedOut).toBe(true);
    expect(await typed.endpoint(endpointId)).toBeUndefined();
    hcn.hang("createEndpoint", "taking effect");
    expect((await refused(typed.createEndpoint(network.id, endpointId, {}))).timedOut).toBe(true);
    expect((await typed.endpoint(endpointId))?.id).toBe(endpointId);
    expect(typed.leaked).toBe(2);
  });
});
