import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { functionNames } from "../../agent/protocols/hcn/native.ts";
import type { HnsService } from "../fakes/hns/hns-service.ts";
import { allClosed, compileDriver, endpoint, network } from "./hcn/driver.ts";
import { RemoteHcn } from "./hcn/remote-hcn.ts";
import { describeWine } from "./wine/describe-wine.ts";

const endpointId = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
const unknownId = "ffffffff-4e5f-6071-8293-a4b5c6d7e8f9";
/** Far longer than a call takes, also on a busy machine. */
const deadlineMs = 3_000;
/** Of a thread that waits for a native call the timer would not run for as long as that: seconds. */
const responsiveMs = 900;

describeWine("HNS through its libraries, from a compiled program", (wine) => {
  let driver = "";
  let hns: HnsService;
  let hcn: RemoteHcn;

  beforeAll(async () => {
    driver = await compileDriver();
    hns = wine.stubs.hns;
  });
  beforeEach(async () => {
    hns.reset();
    hcn = await RemoteHcn.start(wine.prefix, driver, { deadlineMs, maxLeaked: 2 });
  });
  afterEach(() => hcn[Symbol.asyncDispose]());

  /** A network, an endpoint in it, and a namespace. */
  async function standing(): Promise<{ readonly networkId: string; readonly namespaceId: string }> {
    const { id } = await hcn.call("createNetwork", network());
    await hcn.call("createEndpoint", id, endpointId, endpoint("10.10.1.7"));
    return { networkId: id, namespaceId: hns.newNamespace() };
  }

  /** Every call of the interface once, on things that are there. What fails is collected. */
  async function everyCall(): Promise<readonly unknown[]> {
    const change = { ResourceType: "Policy", RequestType: "Add", Settings: { Policies: [] } } as const;
    const failures: unknown[] = [];
    const attempt = async <T>(call: Promise<T>): Promise<T | undefined> =>
      call.catch((error: unknown) => {
        failures.push(error);
        return undefined;
      });
    const made = await attempt(hcn.call("createNetwork", network()));
    const networkId = made?.id ?? unknownId;
    await attempt(hcn.call("networks"));
    await attempt(hcn.call("network", networkId));
    await attempt(hcn.call("modifyNetwork", networkId, change));
    await attempt(hcn.call("createEndpoint", networkId, endpointId, endpoint("10.10.1.7")));
    await attempt(hcn.call("endpoints"));
    await attempt(hcn.call("endpoint", endpointId));
    await attempt(hcn.call("modifyEndpoint", endpointId, change));
    const namespaceId = hns.newNamespace();
    await attempt(hcn.call("namespaces"));
    await attempt(hcn.call("namespace", namespaceId));
    await attempt(hcn.call("attach", namespaceId, endpointId));
    await attempt(hcn.call("detach", namespaceId, endpointId));
    const balancer = { HostComputeEndpoints: [endpointId], PortMappings: [{ Protocol: 6, InternalPort: 80 }] };
    const balancerId = (await attempt(hcn.call("createLoadBalancer", balancer)))?.id ?? unknownId;
    await attempt(hcn.call("loadBalancers"));
    await attempt(hcn.call("deleteLoadBalancer", balancerId));
    await attempt(hcn.call("hnsCall", "GET", "/globals/version"));
    await attempt(hcn.call("deleteEndpoint", endpointId));
    await attempt(hcn.call("deleteNetwork", networkId));
    return failures;
  }

  test("every call there and back; every object closed, every text freed", async () => {
    const { networkId, namespaceId } = await standing();
    const subnets = [{ prefix: "10.10.1.0/24", gateway: "10.10.1.1" }];
    expect(await hcn.call("networks")).toMatchObject([
      { id: networkId, name: "pipette", type: "Transparent", subnets },
    ]);
    const addresses = [{ address: "10.10.1.7", prefixLength: 24 }];
    const made = { id: endpointId, name: "web", networkId, addresses, isRemote: false };
    expect(await hcn.call("endpoint", endpointId)).toMatchObject({ ...made, namespaceId: "" });
    for (let i = 0; i < 2; i++) await hcn.call("attach", namespaceId, endpointId);
    expect(await hcn.call("endpoints")).toMatchObject([{ ...made, namespaceId }]);
    expect(await hcn.call("namespace", namespaceId)).toMatchObject({ type: "Host", endpointIds: [endpointId] });
    const policy = { Type: "OutBoundNAT", Settings: { Exceptions: ["10.0.0.0/8"] } };
    const Settings = { Policies: [policy] };
    await hcn.call("modifyEndpoint", endpointId, { ResourceType: "Policy", RequestType: "Add", Settings });
    expect((await hcn.call("endpoint", endpointId))?.document["Policies"]).toEqual([policy]);
    const Dns = { ServerList: ["10.96.0.10"] };
    await hcn.call("modifyNetwork", networkId, { ResourceType: "DNS", RequestType: "Update", Settings: Dns });
    expect((await hcn.call("network", networkId))?.document["Dns"]).toEqual(Dns);
    for (let i = 0; i < 2; i++) await hcn.call("detach", namespaceId, endpointId);
    expect(await hcn.call("hnsCall", "GET", "/globals/version")).toEqual({ Major: 13, Minor: 3 });
    const PortMappings = [{ Protocol: 6, InternalPort: 8080, ExternalPort: 80 }];
    const balancer = await hcn.call("createLoadBalancer", { HostComputeEndpoints: [endpointId], PortMappings });
    expect(await hcn.call("loadBalancers")).toMatchObject([{ id: balancer.id, endpointIds: [endpointId] }]);
    for (let i = 0; i < 2; i++) {
      await hcn.call("deleteLoadBalancer", balancer.id);
      await hcn.call("deleteEndpoint", endpointId);
      await hcn.call("deleteNetwork", networkId);
    }
    expect([hns.store.networks.size, hns.store.endpoints.size, hns.store.loadBalancers.size]).toEqual([0, 0, 0]);
    expect(await hcn.call("endpoint", endpointId)).toBeUndefined();
    await allClosed(hns);
    expect(hns.calls.at(-1)?.strings).toBe(0);
  });

  test("texts beyond ASCII arrive as they are, both ways, through V2 and V1", async () => {
    const name = 'wéb "日本" \\ 𝄞\u0001';
    const { id } = await hcn.call("createNetwork", network(name));
    expect([...hns.store.networks.values()].map((each) => each["Name"])).toEqual([name]);
    expect((await hcn.call("network", id))?.name).toBe(name);
    expect(await hcn.call("hnsCall", "GET", `/networks/${id}`)).toMatchObject({ Name: name });
    const body = { Name: name, VirtualNetwork: id, IPAddress: "10.10.1.9" };
    expect(await hcn.call("hnsCall", "POST", "/endpoints/", body)).toMatchObject({ Name: name });
    expect(await hcn.call("endpoints")).toMatchObject([{ name }]);
  });

  test("an identifier is the one that was asked for, byte for byte", async () => {
    const ID = "00112233-4455-6677-8899-aabbccddeeff";
    expect((await hcn.call("createNetwork", { ...network(), ID })).id).toBe(ID);
    expect([...hns.store.networks.keys()]).toEqual([ID.toUpperCase()]);
    await hcn.call("deleteNetwork", ID);
    expect(hns.calls.at(-1)).toMatchObject({ fn: "HcnDeleteNetwork", id: ID.toUpperCase() });
    expect((await hcn.refused("network", "no-identifier")).message).toContain('"no-identifier"');
  });

  describe("what fails", () => {
    test("each function in turn: its name and number are told, and nothing stays open", async () => {
      const fallible = functionNames.filter((name) => !name.startsWith("HcnClose"));
      const reached: string[] = [];
      for (const call of fallible) {
        hns.reset();
        using fault = hns.fault({ call, hresult: 0x803b0017 });
        const failures = await everyCall();
        if (fault.hits === 0) continue;
        reached.push(call);
        expect(failures).toContainEqual(expect.objectContaining({ call, hresult: 0x803b0017, timedOut: false }));
        await allClosed(hns);
        expect(hns.calls.at(-1)?.strings).toBe(0);
      }
      // Namespaces are the runtime's to make and to delete; a load balancer is not changed, but made anew.
      const unused = ["HcnCreateNamespace", "HcnDeleteNamespace", "HcnModifyLoadBalancer"];
      expect(fallible.filter((name) => !reached.includes(name)).sort()).toEqual(unused);
    });

    test("numbers are told with their names, and with the service's words", async () => {
      const names = {
        2151350278: "HCN_E_ADAPTER_NOT_FOUND",
        2151350285: "HCN_E_INVALID_POLICY",
        2151350291: "HCN_E_PORT_ALREADY_EXISTS",
        2151350319: "HCN_E_ADDR_INVALID_OR_RESERVED",
        2147942405: "E_ACCESSDENIED",
        2147500033: "E_NOTIMPL",
        2147947410: "ERROR_OBJECT_ALREADY_EXISTS",
        2326440618: "0x8AAAAAAA",
      };
      for (const [number, name] of Object.entries(names)) {
        using _ = hns.fault({ call: "HcnCreateNetwork", hresult: Number(number) });
        const error = await hcn.refused("createNetwork", network());
        expect(error).toMatchObject({ hresult: Number(number), call: "HcnCreateNetwork", timedOut: false });
        expect(error.serviceText).toBe("As the test wants it.");
        expect(error.message).toMatch(`Cannot create network "pipette": HcnCreateNetwork answers ${name}`);
      }
    });

    test("an error record counts, whatever the number says", async () => {
      await standing();
      using _ = hns.fault({ call: "HcnQueryEndpointProperties", hresult: 0 });
      expect(await hcn.refused("endpoint", endpointId)).toMatchObject({
        call: "HcnQueryEndpointProperties",
        hresult: 0,
        serviceText: "As the test wants it.",
      });
      await allClosed(hns);
    });

    test("V1 by its answer and by its number", async () => {
      const absent = `/endpoints/${unknownId}`;
      expect(await hcn.refused("hnsCall", "GET", absent)).toMatchObject({ call: "HNSCall", hresult: 0x803b0002 });
      expect(hns.calls.at(-1)?.hresult).toBe(0);
      using _ = hns.fault({ call: "HNSCall", hresult: 0x803b0013 });
      expect(await hcn.refused("hnsCall", "GET", absent)).toMatchObject({ call: "HNSCall", hresult: 0x803b0013 });
    });

    test("an endpoint of another namespace is not taken for attached", async () => {
      const { namespaceId } = await standing();
      await hcn.call("attach", hns.newNamespace(), endpointId);
      expect(await hcn.refused("attach", namespaceId, endpointId)).toMatchObject({ hresult: 0x803b002b });
    });

    test("an endpoint that vanishes while all are listed is left out", async () => {
      const { networkId } = await standing();
      await hcn.call("createEndpoint", networkId, unknownId, endpoint("10.10.1.8", "other"));
      const held = hns.fault({ call: "HcnOpenEndpoint", match: endpointId.toUpperCase(), holdMs: "until released" });
      const listed = hcn.call("endpoints");
      await held.hit();
      hns.store.endpoints.delete(endpointId.toUpperCase());
      held[Symbol.dispose]();
      expect(await listed).toMatchObject([{ id: unknownId }]);
    });

    test("with the service away every call says so, and works again behind", async () => {
      await standing();
      hns.isAway = true;
      expect(await hcn.refused("endpoints")).toMatchObject({ hresult: 0x800706ba, timedOut: false });
      hns.isAway = false;
      expect(await hcn.call("endpoints")).toMatchObject([{ id: endpointId }]);
    });
  });

  describe("what hangs", () => {
    test("is given up at its deadline; the main thread runs on, the next call works, late ones clean up", async () => {
      const { namespaceId } = await standing();
      const calls = [
        ["HcnEnumerateEndpoints", () => hcn.refused("endpoints")],
        ["HcnOpenEndpoint", () => hcn.refused("endpoint", endpointId)],
        ["HcnQueryEndpointProperties", () => hcn.refused("endpoint", endpointId)],
        ["HcnModifyNamespace", () => hcn.refused("attach", namespaceId, endpointId)],
        ["HcnCreateEndpoint", () => hcn.refused("createEndpoint", networkIdOf(hns), unknownId, endpoint("10.10.1.8"))],
        ["HcnDeleteEndpoint", () => hcn.refused("deleteEndpoint", endpointId)],
        ["HNSCall", () => hcn.refused("hnsCall", "GET", "/globals/version")],
      ] as const;
      for (const [call, refused] of calls) {
        const fault = hns.fault({ call, holdMs: "until released", times: 1 });
        await hcn.longestGapMs();
        const error = await refused();
        expect(error).toMatchObject({ call, timedOut: true, hresult: 0 });
        expect(error.message).toContain(`${call} has not returned within ${deadlineMs} ms`);
        expect(await hcn.longestGapMs()).toBeLessThan(responsiveMs);
        expect(await hcn.leaked()).toBe(1);
        // The service lists what there is while the other call still hangs.
        expect((await hcn.call("networks")).length).toBe(1);
        fault[Symbol.dispose]();
        while ((await hcn.leaked()) > 0) await Bun.sleep(20);
        await allClosed(hns);
      }
      expect(await hcn.lost()).toEqual([]);
    });

    test("may take effect late: what a given-up call made is found under its identifier", async () => {
      const { networkId } = await standing();
      const fault = hns.fault({ call: "HcnCreateEndpoint", holdMs: "until released", times: 1 });
      await hcn.refused("createEndpoint", networkId, unknownId, endpoint("10.10.1.8"));
      expect(await hcn.call("endpoint", unknownId)).toBeUndefined();
      fault[Symbol.dispose]();
      while ((await hcn.leaked()) > 0) await Bun.sleep(20);
      expect(await hcn.call("endpoint", unknownId)).toMatchObject({ id: unknownId });
      const again = await hcn.refused("createEndpoint", networkId, unknownId, endpoint("10.10.1.8"));
      expect(again.hresult).toBe(0x80071392);
      await allClosed(hns);
    });

    test("too often: somebody is told, and the process still ends", async () => {
      await hcn.call("networks");
      using fault = hns.fault({ call: "HcnEnumerateNetworks", holdMs: "until released" });
      await Promise.all([1, 2].map(() => hcn.refused("networks")));
      expect([await hcn.leaked(), await hcn.lost()]).toEqual([2, []]);
      await hcn.refused("networks");
      expect(fault.hits).toBe(3);
      expect(await hcn.lost()).toEqual([
        "Cannot call HNS any longer: 3 calls have not come back, wanted at most 2: only a new process is rid of them",
      ]);
      const started = performance.now();
      await hcn.close();
      hcn.hangUp();
      expect(await hcn.program.ended).toMatchObject({ status: 0 });
      expect(performance.now() - started).toBeLessThan(20_000);
    });

    test("holds up nothing else: a slow call has a thread of its own", async () => {
      const { networkId } = await standing();
      const slow = hns.fault({ call: "HcnCreateEndpoint", holdMs: "until released", times: 1 });
      const made = hcn.call("createEndpoint", networkId, unknownId, endpoint("10.10.1.8"));
      await slow.hit();
      expect(await hcn.call("endpoint", endpointId)).toMatchObject({ id: endpointId });
      slow[Symbol.dispose]();
      expect(await made).toMatchObject({ id: unknownId });
    });
  });
});

const networkIdOf = (hns: HnsService): string => ([...hns.store.networks.keys()][0] ?? "").toLowerCase();
