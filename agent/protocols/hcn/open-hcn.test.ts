import { afterEach, describe, expect, test } from "vitest";
import { HnsService } from "../../../test/fakes/hns/hns-service.ts";
import { NativeHns } from "../../../test/fakes/hns/native-hns.ts";
import { outcomeOf } from "./call-server.ts";
import { type Hcn, HcnError, type HcnOptions, openHcn } from "./mod.ts";
import { hcnOver } from "./open-hcn.ts";
import { HcnOperations } from "./operations.ts";

const file = new URL("../../../test/fakes/hns/scripted-thread.ts", import.meta.url);
const endpointId = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const namespaceId = "5e5e5e5e-7c55-4a17-9f63-0a5c3e1d2b4a";

const defaultRoute = { NextHop: "10.10.1.1", DestinationPrefix: "0.0.0.0/0" };
const settings = {
  Name: "pipette",
  Type: "NAT",
  Ipams: [{ Subnets: [{ IpAddressPrefix: "10.10.1.0/24", Routes: [defaultRoute] }] }],
};

const opened: Hcn[] = [];
function open(options: HcnOptions = {}): Hcn {
  const hcn = openHcn({ file, threads: 1, ...options });
  opened.push(hcn);
  return hcn;
}
afterEach(async () => {
  for (const hcn of opened.splice(0)) await hcn[Symbol.asyncDispose]();
});

async function refused(call: Promise<unknown>): Promise<HcnError> {
  const caught = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (caught instanceof HcnError) return caught;
  throw new Error(`Expected a refusal, not ${String(caught)}`);
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5);
}

test("a long list is looked at in parts, each of which has a deadline of its own", async () => {
  const service = new HnsService();
  const ids = Array.from({ length: 250 }, () => crypto.randomUUID());
  for (const id of ids) service.store.endpoints.set(id.toUpperCase(), { ID: id.toUpperCase() });
  const operations = new HcnOperations(new NativeHns(service));
  const counts: number[] = [];
  const hcn = hcnOver({
    leaked: 0,
    async call(_, task) {
      const before = service.calls.length;
      const outcome = outcomeOf(operations, task);
      counts.push(service.calls.slice(before).filter(({ fn }) => fn === "HcnOpenEndpoint").length);
      return outcome.t === "done" ? outcome.value : undefined;
    },
    async [Symbol.asyncDispose]() {},
  });
  expect((await hcn.endpoints()).map(({ id }) => id)).toEqual(ids);
  expect(counts).toEqual([0, 100, 100, 50]);
});

test("each call that fails is told of, by the function of Windows and the name of its answer", async () => {
  const failures = [
    { call: "HcnCreateNetwork", hresult: 0x803b0010 },
    { call: "HcnCreateNetwork", hresult: 0x803b9999 },
    { call: "HcnCreateNetwork" },
    { call: "HcnCreateNetwork", timedOut: true },
  ];
  const told: string[] = [];
  const over = {
    leaked: 0,
    async call(action: string) {
      throw new HcnError({ action, call: "", ...failures.shift() });
    },
    async [Symbol.asyncDispose]() {},
  };
  const hcn = hcnOver(over, ({ call, code }) => told.push(`${call} ${code}`));
  const create = (): Promise<HcnError> => refused(hcn.createNetwork(settings));
  for (const code of ["HCN_E_NETWORK_ALREADY_EXISTS", "other", "none", "timeout"])
    expect((await create()).code).toBe(code);
  expect(told).toEqual([
    "HcnCreateNetwork HCN_E_NETWORK_ALREADY_EXISTS",
    "HcnCreateNetwork other",
    "HcnCreateNetwork none",
    "HcnCreateNetwork timeout",
  ]);
});

describe("HNS on threads of its own", () => {
  test("every call there and back", async () => {
    const hcn = open();
    const ID = "6F1D3F0E-7C55-4A17-9F63-0A5C3E1D2B4A";
    const network = await hcn.createNetwork({ ID, ...settings });
    expect(network).toMatchObject({ id: ID.toLowerCase(), name: "pipette" });
    expect(await hcn.networks()).toEqual([network]);
    const made = await hcn.createEndpoint(network.id, endpointId, { Name: "wéb" });
    expect(made).toMatchObject({ id: endpointId, networkId: network.id, name: "wéb" });
    expect(await hcn.endpoints()).toEqual([made]);
    const Policies = [{ Type: "ProviderAddress", Settings: { ProviderAddress: "10.0.0.1" } }];
    const change = { ResourceType: "Policy", RequestType: "Update", Settings: { Policies } } as const;
    await hcn.modifyEndpoint(endpointId, change);
    await hcn.modifyNetwork(network.id, change);
    expect((await hcn.endpoint(endpointId))?.document["Policies"]).toEqual(Policies);
    expect((await hcn.network(network.id))?.document["Policies"]).toEqual(Policies);
    const PortMappings = [{ Protocol: 6, InternalPort: 80, ExternalPort: 80 }];
    const balancer = await hcn.createLoadBalancer({ HostComputeEndpoints: [endpointId], PortMappings });
    expect(await hcn.loadBalancers()).toEqual([balancer]);
    await hcn.deleteLoadBalancer(balancer.id);
    expect(await hcn.namespaces()).toEqual([]);
    expect(await hcn.namespace(namespaceId)).toBeUndefined();
    expect((await refused(hcn.attach(namespaceId, endpointId))).hresult).toBe(0x80070490);
    await hcn.detach(namespaceId, endpointId);
    for (let i = 0; i < 2; i++) {
      await hcn.deleteEndpoint(endpointId);
      await hcn.deleteNetwork(network.id);
    }
    expect(await hcn.endpoint(endpointId)).toBeUndefined();
    expect(await hcn.hnsCall("GET", "/handles")).toBe(0);
  });

  test("a call that hangs is given up, this thread goes on meanwhile, and the next call gets another", async () => {
    const hcn = open({ deadlineMs: 1_200 });
    await hcn.networks();
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 5);
    const error = await refused(hcn.hnsCall("GET", "/block/2700"));
    clearInterval(ticking);
    expect(error).toMatchObject({ call: "HNSCall", timedOut: true, hresult: 0 });
    expect(error.message).toBe(
      'Cannot GET "/block/2700" of HNS: HNSCall has not returned within 1200 ms; it may still take effect',
    );
    expect(ticks).toBeGreaterThan(10);
    expect(hcn.leaked).toBe(1);
    // Each thread here has a service of its own: the new one begins at nothing.
    expect(await hcn.hnsCall("GET", "/calls")).toBe(1);
    // The first is one too many when it comes back.
    await until(() => hcn.leaked === 0);
    expect(await hcn.hnsCall("GET", "/calls")).toBe(2);
  });

  test("a thread that comes back late takes part again where it has not been replaced", async () => {
    const hcn = open({ deadlineMs: 1_200 });
    await hcn.networks();
    await refused(hcn.hnsCall("GET", "/block/1800"));
    expect(hcn.leaked).toBe(1);
    await until(() => hcn.leaked === 0);
    // HNSCall, HcnEnumerateNetworks before, and this one.
    expect(await hcn.hnsCall("GET", "/calls")).toBe(3);
  });

  test("of a call that was given up nothing more begins, and what it opened is closed", async () => {
    const hcn = open({ deadlineMs: 1_200 });
    const network = await hcn.createNetwork(settings);
    await hcn.hnsCall("GET", "/block-next/1800/HcnOpenNetwork");
    const error = await refused(hcn.createEndpoint(network.id, endpointId, {}));
    expect(error).toMatchObject({ call: "HcnOpenNetwork", timedOut: true });
    await until(() => hcn.leaked === 0);
    expect(await hcn.endpoints()).toEqual([]);
    expect(await hcn.hnsCall("GET", "/handles")).toBe(0);
  });

  test("slow calls run beside each other", async () => {
    const hcn = open({ threads: 2 });
    await Promise.all([hcn.networks(), hcn.networks()]);
    const ended: string[] = [];
    const slow = hcn.hnsCall("GET", "/block/1500").then(() => ended.push("slow"));
    await hcn.hnsCall("GET", "/block/50").then(() => ended.push("quick"));
    await slow;
    expect(ended).toEqual(["quick", "slow"]);
  });

  test("a call waits for a thread no longer than its deadline, and has a new one when it gets one", async () => {
    const hcn = open({ deadlineMs: 1_200 });
    await hcn.networks();
    const hung = refused(hcn.hnsCall("GET", "/block/3600"));
    const next = hcn.hnsCall("GET", "/block/50");
    const last = refused(hcn.networks());
    expect(await hung).toMatchObject({ call: "HNSCall", timedOut: true });
    const waited = await last;
    expect(waited).toMatchObject({ call: "", timedOut: true });
    expect(waited.message).toBe("Cannot list the networks: no thread of 1 was free within 1200 ms");
    expect(await next).toBe("GET");
    expect(hcn.leaked).toBe(1);
  });

  test("past a bound of leaked threads somebody is told, once", async () => {
    const told: HcnError[] = [];
    const hcn = open({ deadlineMs: 1_200, maxLeaked: 1, onLost: (reason) => told.push(reason) });
    for (let i = 0; i < 3; i++) {
      await refused(hcn.hnsCall("GET", "/block/5400"));
      expect(told.length).toBe(i === 0 ? 0 : 1);
    }
    expect(told[0]?.message).toBe(
      "Cannot call HNS any longer: 2 calls have not come back, wanted at most 1: only a new process is rid of them",
    );
  });

  test("a thread that dies fails its call, and the next one gets another", async () => {
    const hcn = open();
    const error = await refused(hcn.hnsCall("GET", "/die"));
    expect(error).toMatchObject({ timedOut: false, hresult: 0 });
    expect(error.message).toContain("the thread of the call is gone");
    expect(await hcn.networks()).toEqual([]);
    expect((await refused(hcn.hnsCall("GET", "/throw"))).message).toContain("Thrown on request");
    expect(await hcn.networks()).toEqual([]);
  });

  test("a thread that cannot start fails its call", async () => {
    const hcn = open({ file: new URL("./there-is-none.ts", import.meta.url) });
    expect((await refused(hcn.networks())).message).toContain("the thread of the call is gone");
    const refusing = open({ file: new URL("https://192.0.2.1/") });
    for (let i = 0; i < 2; i++) await refused(refusing.networks());
  });

  test("closing rejects what waits and what hangs, waits for neither, and may be done twice", async () => {
    const hcn = open();
    await hcn.networks();
    const calls = [refused(hcn.hnsCall("GET", "/block/2700")), refused(hcn.networks())];
    await Bun.sleep(20);
    const started = performance.now();
    for (let i = 0; i < 2; i++) await hcn[Symbol.asyncDispose]();
    expect(performance.now() - started).toBeLessThan(2_000);
    for (const error of [...(await Promise.all(calls)), await refused(hcn.networks())])
      expect(error.message).toContain("the connection to HNS is being closed");
  });
});
