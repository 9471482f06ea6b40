import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { formatIp } from "../../../shared/net/ip.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { addressesOf, WindowsNode } from "./windows-node.ts";

/** The answer of an ADD. */
interface Result {
  readonly interfaces: readonly { readonly name: string; readonly mac: string; readonly sandbox?: string }[];
  readonly ips: readonly { readonly address: string; readonly gateway: string }[];
  readonly dns: unknown;
}

describeWine("pods on HNS, with the compiled plugin and agent", (wine) => {
  let node: WindowsNode;
  beforeEach(async () => {
    node = await WindowsNode.make(wine.prefix);
  });
  afterEach(() => node[Symbol.asyncDispose]());

  const add = async (id: string, netns: string, conf: Readonly<Record<string, unknown>> = {}): Promise<Result> => {
    const answer = await node.cni("ADD", id, {
      netns,
      conf,
      args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-${id}`,
    });
    if (answer.t === "error") throw new Error(JSON.stringify(answer));
    return JSON.parse(answer.text) as Result;
  };
  const del = (id: string, netns = "") => node.cni("DEL", id, { netns });
  /** Functions of HNS that were called during `run`, without those that close handles. */
  const callsOf = async (run: () => Promise<unknown>): Promise<readonly string[]> => {
    const before = node.stubs.hns.calls.length;
    await run();
    return node.stubs.hns.calls.slice(before).flatMap(({ fn }) => (fn.startsWith("HcnClose") ? [] : fn));
  };

  test("the node is prepared once: network, adapter, names, NetNat; a second start changes nothing", async () => {
    await node.start({ outboundNat: { exceptions: ["10.9.0.0/16"] } });
    const [network] = [...node.stubs.hns.store.networks.values()];
    expect(network).toMatchObject({ Name: "pipette", Type: "Transparent" });
    expect(node.stubs.hns.calls.find(({ fn, texts }) => fn === "HNSCall" && texts[0] === "POST")?.texts[2]).toContain(
      '"ManagementIP":"192.168.1.5/24"',
    );
    expect(node.host.state.adapters.map(({ Name }) => Name)).toEqual(["Ethernet0", "br-int"]);
    expect(node.host.state.nats).toMatchObject([{ Name: "pipette-nat" }]);
    const acts = node.host.done.length;
    await node.stop();
    await node.start({ outboundNat: { exceptions: ["10.9.0.0/16"] } });
    expect(node.host.done.length).toBe(acts);
    expect(node.stubs.hns.store.networks.size).toBe(1);
  });

  test("DNS, ports and policies reach the endpoint, and the answer", async () => {
    await node.start({
      outboundNat: { exceptions: ["10.9.0.0/16"] },
      policies: [{ Type: "ACL", Action: "Allow", Direction: "In", Protocols: "6", Priority: 200 }],
    });
    const netns = node.stubs.hns.newNamespace();
    const result = await add("a", netns, {
      dns: { nameservers: ["10.0.0.1"] },
      runtimeConfig: {
        dns: { Servers: ["10.96.0.10"], Searches: ["a.local"], Options: ["ndots:5"] },
        portMappings: [{ HostPort: 8080, ContainerPort: 80, Protocol: "TCP" }],
      },
    });
    expect(result.dns).toEqual({ nameservers: ["10.96.0.10"], search: ["a.local"], options: ["ndots:5"] });
    const [endpoint] = node.endpoints();
    expect(endpoint).toMatchObject({
      Name: expect.stringMatching(/^web-a-[a-z0-9]{6}$/),
      IpConfigurations: [{ IpAddress: "10.9.0.2", PrefixLength: 24 }],
      Dns: { ServerList: ["10.96.0.10"], Search: ["a.local"], Options: ["ndots:5"] },
      Policies: [
        { Type: "OutBoundNAT", Settings: { Exceptions: ["10.9.0.0/16"] } },
        { Type: "ACL", Settings: { Action: "Allow", Priority: 200 } },
        { Type: "PortMapping", Settings: { Protocol: 6, InternalPort: 80, ExternalPort: 8080 } },
      ],
    });
    expect(String(endpoint?.["HostComputeNamespace"]).toLowerCase()).toBe(netns);
    const mac = String(endpoint?.["MacAddress"]).toLowerCase().replaceAll("-", ":");
    expect(result.interfaces).toEqual([
      { name: endpoint?.["Name"], mac },
      { name: "eth0", mac, sandbox: netns },
    ]);
  });

  test("an ADD that comes again looks, and answers the same to the byte", async () => {
    await node.start();
    const netns = node.stubs.hns.newNamespace();
    const first = await node.run("ADD", "a", { netns });
    let again = first;
    const calls = await callsOf(async () => {
      again = await node.run("ADD", "a", { netns });
    });
    expect(again.stdout).toBe(first.stdout);
    expect(calls).toEqual(["HcnOpenEndpoint", "HcnQueryEndpointProperties"]);
  });

  test("peers 3: an address that an endpoint of somebody else holds is not given out", async () => {
    const { store } = node.stubs.hns;
    await node.start();
    const [network] = [...store.networks.values()];
    const id = "99999999-0000-4000-8000-000000000001";
    const document = { ID: id, Name: "theirs", HostComputeNetwork: network?.["ID"], HostComputeNamespace: "" };
    store.endpoints.set(id, { ...document, IpConfigurations: [{ IpAddress: "10.9.0.2", PrefixLength: 24 }] });
    await node.stop();
    await node.start();
    expect((await add("a", node.stubs.hns.newNamespace())).ips[0]?.address).toBe("10.9.0.3/24");
    await del("a");
    expect([...store.endpoints.keys()]).toEqual([id]);
    store.endpoints.clear();
  });

  test("an agent that starts adopts what stands, and removes what has left while it was away", async () => {
    await node.start();
    const spaces = [1, 2, 3].map(() => node.stubs.hns.newNamespace());
    const results = await Promise.all(spaces.map((netns, i) => add(`p${i}`, netns)));
    await node.stop(true);
    expect((await del("p0", spaces[0])).t).toBe("ok");
    expect(node.endpoints()).toHaveLength(3);
    await node.start();
    expect(await node.disagreements()).toEqual([]);
    expect(node.endpoints()).toHaveLength(2);
    expect(await add("p1", spaces[1] ?? "")).toEqual(results[1]);
    for (const i of [1, 2]) await del(`p${i}`, spaces[i]);
    expect([node.endpoints(), await node.disagreements()]).toEqual([[], []]);
  });

  test("eight clients at once get eight addresses, and leave none", async () => {
    await node.start();
    const ids = Array.from({ length: 8 }, (_, i) => `p${i}`);
    const results = await Promise.all(ids.map((id) => add(id, node.stubs.hns.newNamespace())));
    expect(new Set(results.map(({ ips }) => ips[0]?.address)).size).toBe(8);
    expect(await node.disagreements()).toEqual([]);
    await Promise.all(ids.map((id) => del(id)));
    expect([node.endpoints(), await node.disagreements()]).toEqual([[], []]);
  });

  test("peers 20: HNS that restarts: ADD is for later until it is back, what stood is made again by its ADD", async () => {
    await node.start();
    const [a, b] = [node.stubs.hns.newNamespace(), node.stubs.hns.newNamespace()];
    const first = await add("a", a);
    node.stubs.hns.isAway = true;
    expect(await node.cni("ADD", "b", { netns: b })).toMatchObject({ t: "error", code: 11 });
    expect((await del("b", b)).t).toBe("ok");
    node.stubs.hns.restart();
    node.stubs.hns.isAway = false;
    await expect.poll(async () => (await node.cni("ADD", "b", { netns: b })).t, { timeout: 20_000 }).toBe("ok");
    expect((await add("a", a)).ips).toEqual(first.ips);
    expect(await node.disagreements()).toEqual([]);
    for (const id of ["a", "b"]) await del(id);
    expect([node.endpoints(), await node.disagreements()]).toEqual([[], []]);
  });

  test("peers 20: a network that has gone is made again", async () => {
    const { store } = node.stubs.hns;
    await node.start();
    const netns = node.stubs.hns.newNamespace();
    store.networks.clear();
    expect(await node.cni("ADD", "a", { netns })).toMatchObject({ t: "error", code: 11 });
    await expect.poll(async () => (await node.cni("ADD", "a", { netns })).t, { timeout: 20_000 }).toBe("ok");
    expect([store.networks.size, await node.disagreements()]).toEqual([1, []]);
  });

  describe("leases", () => {
    test("peers 3: wait as releasing until HNS has deleted the endpoint, and only then may another have the address", async () => {
      await node.start();
      await add("a", node.stubs.hns.newNamespace());
      const fault = node.stubs.hns.fault({ call: "HcnDeleteEndpoint", hresult: 0x80004005 });
      expect((await del("a")).t).toBe("ok");
      expect((await node.leases()).map(({ state }) => state)).toEqual(["releasing"]);
      const other = await add("b", node.stubs.hns.newNamespace());
      expect(other.ips[0]?.address).toBe("10.9.0.3/24");
      fault[Symbol.dispose]();
      expect(await node.disagreements()).toEqual([]);
      expect(node.endpoints().flatMap(addressesOf)).toEqual(["10.9.0.3"]);
      const left = (await node.leases()).find(({ owner }) => owner.sandboxId === "a");
      expect([left?.state, left && formatIp(left.address.ip)]).toEqual(["cooling", "10.9.0.2"]);
    });
  });
});
