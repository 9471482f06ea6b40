import { describe, expect, test } from "vitest";
import { cleanUpBy } from "../../agent/commands/cleanup/clean-up.ts";
import { takeBackWindowsNode, type WindowsNode } from "../../agent/commands/cleanup/clean-up.windows.ts";
import { EndpointRecords, endpointRecords } from "../../agent/datapath/hns/mod.ts";
import { newOwnId } from "../../agent/datapath/hns/services/own-ids.ts";
import { handBackAddress, setUpHost } from "../../agent/datapath/hns/windows-host/mod.ts";
import { openSystem } from "../../shared/server/open-system.ts";
import { FakeHns } from "../fakes/hns/fake-hns.ts";
import { createNamespace } from "../fakes/hns/namespaces.ts";
import { deleteHnsNetwork, makeHnsNetwork } from "./node-state.ts";
import { cidr, HostFixture, ip } from "./set-up-fixture.ts";

const namespace = "0a0a0a0a-0000-4000-8000-000000000001";

/** A node with a network of ours on which two pods stand, and one network of somebody else's. */
async function standing(host: HostFixture): Promise<FakeHns> {
  await host.start();
  const hns = new FakeHns();
  hns.service.store.adapters.add("Ethernet0");
  createNamespace(hns.service.store, namespace, {});
  const Ipams = [
    {
      Subnets: [
        { IpAddressPrefix: "10.10.1.0/24", Routes: [{ NextHop: "10.10.1.254", DestinationPrefix: "0.0.0.0/0" }] },
      ],
    },
  ];
  const Policies = [{ Type: "NetAdapterName", Settings: { NetworkAdapterName: "Ethernet0" } }];
  const ours = await hns.hcn.createNetwork({ Name: "pipette", Type: "Transparent", Policies, Ipams });
  const other = await hns.hcn.createNetwork({ Name: "nat", Type: "NAT", Ipams });
  const ends = [
    [ours.id, "1"],
    [ours.id, "2"],
    [other.id, "3"],
  ] as const;
  for (const [network, n] of ends) {
    const id = `0b0b0b0b-0000-4000-8000-00000000000${n}`;
    const IpConfigurations = [{ IpAddress: `10.10.1.${n}`, PrefixLength: 24 }];
    await hns.hcn.createEndpoint(network, id, { Name: `pod-${n}`, IpConfigurations });
    if (n === "1") await hns.hcn.attach(namespace, id);
  }
  hns.service.fault({
    call: "HcnDeleteNetwork",
    match: ours.id,
    meanwhile: () => deleteHnsNetwork(host.node.state, "pipette", host.moves),
  });
  hns.service.calls.length = 0;
  return hns;
}

async function cleanUp(host: HostFixture, hns: FakeHns, json = false, overlay: Overlay = {}) {
  const [out, err]: [string[], string[]] = [[], []];
  const io = {
    stdout: (text: string) => void out.push(text),
    stderr: (text: string) => void err.push(text),
    stdin: async () => new Uint8Array(),
    env: {},
    stderrIsTerminal: false,
  };
  const served = { dataDir: host.dataDir, networks: [{ name: "pods" }] };
  const takeBack = () => takeBackWindowsNode({ dataDir: host.dataDir, hcn: hns.hcn, run: host.run, ...overlay });
  const status = await cleanUpBy(takeBack, served, json, io);
  return { status, stdout: out.join(""), stderr: err.join("") };
}

type Overlay = Pick<WindowsNode, "removeOverlay">;

describe("pipette agent --cleanup", () => {
  test("takes the overlay away between the steps and the HNS network, which stays while that fails", async () => {
    using host = new HostFixture({ peers: [] });
    const fresh = host.snapshot();
    const hns = await standing(host);
    const step = "ovs bridge";
    const what = 'bridge "br-int"';
    let seen: unknown;
    const removeOverlay = async () => {
      seen = [host.node.state.extensions.at(-1)?.["Enabled"], hns.networks.length];
      return [{ step, what, did: "failed", problem: "the database is away" } as const];
    };
    const failed = await cleanUp(host, hns, false, { removeOverlay });
    expect([failed.status, failed.stderr]).toEqual([1, "the database is away\n"]);
    expect(seen).toEqual([false, 2]);
    const undone = async () => [{ step, what, did: "undone" } as const];
    const { status, stdout } = await cleanUp(host, hns, false, { removeOverlay: undone });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^ovs bridge +bridge "br-int" +undone$/m);
    expect(host.snapshot()).toEqual(fresh);
    // Where nothing is on record a database that is away does not matter.
    expect(await cleanUp(host, hns, false, { removeOverlay })).toMatchObject({ status: 0, stderr: "" });
  });

  test("takes the load balancers of services away with their endpoints on other nodes, and nobody else's", async () => {
    using host = new HostFixture({ peers: [] });
    const hns = await standing(host);
    const [network] = await hns.hcn.networks();
    const [pod] = await hns.hcn.endpoints();
    const theirs = "99999999-0000-4000-8000-000000000001";
    const lead = (ID: string, to: string, port: number) =>
      hns.hcn.createLoadBalancer({
        ID,
        HostComputeEndpoints: [to],
        PortMappings: [{ Protocol: 6, InternalPort: 80, ExternalPort: port }],
      });
    const remote = { Flags: 1, IpConfigurations: [{ IpAddress: "10.10.2.9" }] };
    const elsewhere = await hns.hcn.createEndpoint(network?.id ?? "", newOwnId(), remote);
    await lead(newOwnId(), elsewhere.id, 80);
    await lead(theirs, pod?.id ?? "", 81);
    const { status, stdout } = await cleanUp(host, hns);
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^hns load balancer +\S+ +undone$/m)]);
    expect((await hns.hcn.loadBalancers()).map(({ id }) => id)).toEqual([theirs]);
    expect(await hns.hcn.endpoint(elsewhere.id)).toBeUndefined();
  });

  test("takes everything of ours away and nothing else, says so, and has nothing to do the second time", async () => {
    using host = new HostFixture({ peers: [] });
    const fresh = host.snapshot();
    const hns = await standing(host);
    expect(await cleanUp(host, hns)).toEqual({
      status: 0,
      stderr: "",
      stdout: `STEP                 WHAT                                               DID
nat                  NetNat "pipette-nat" for 10.10.1.0/24              undone
pod route            route to 10.10.1.0/24 through 0.0.0.0 on "br-int"  undone
mtu                  MTU 1450 on "br-int" (IPv4)                        undone
forwarding           IPv4 forwarding on "br-int"                        undone
software rsc         software RSC of switch "pipette"                   undone
ovs extension        Open vSwitch extension of switch "pipette"         undone
adapter name         "br-int", virtual adapter with 00155d010203        undone
switch adapter name  "br-int", adapter of switch "pipette"              undone
hns endpoint         "pod-1" 10.10.1.1                                  undone
hns endpoint         "pod-2" 10.10.1.2                                  undone
hns network          HNS network "pipette"                              undone
hand back            192.168.1.5/24 on "Ethernet0"                      was there
`,
    });
    expect(host.snapshot()).toEqual(fresh);
    expect(hns.networks.map((network) => network["Name"])).toEqual(["nat"]);
    expect(hns.endpoints.map((endpoint) => endpoint["Name"])).toEqual(["pod-3"]);
    expect(hns.endpointsIn(namespace).length).toBe(0);

    hns.service.calls.length = 0;
    const again = await cleanUp(host, hns);
    expect(again).toEqual({ status: 0, stdout: "nothing on record: there is nothing to clean up\n", stderr: "" });
    expect(hns.service.calls).toEqual([]);
    expect(JSON.parse((await cleanUp(host, hns, true)).stdout)).toEqual({ changes: [] });
  });

  test("touches nothing while an agent runs", async () => {
    using host = new HostFixture();
    const hns = await standing(host);
    const before = host.snapshot();
    const system = await openSystem();
    const agent = system.tryLock(`${host.dataDir}/agent.lock`);
    if (agent.t !== "ours") throw new Error("the lock was to be had");
    await expect(cleanUp(host, hns)).rejects.toThrow(
      `Cannot start the clean-up: data directory "${host.dataDir}" is held by process ${process.pid}`,
    );
    expect([host.snapshot(), hns.service.calls]).toEqual([before, []]);
    agent.release();
    expect((await cleanUp(host, hns)).status).toBe(0);
  });

  test.each([
    ["networks", ["hns network"]],
    ["endpoints", ["hns load balancer", "hns network"]],
    ["detach", ["hns network"]],
    ["deleteEndpoint", ["hns network"]],
    ["deleteNetwork", ["hns network"]],
  ] as const)(
    "where HNS fails at %s it says so, does the rest, keeps the card on record, and goes on the next time",
    async (call, failed) => {
      using host = new HostFixture();
      const fresh = host.snapshot();
      const hns = await standing(host);
      hns.fail(call, 0x80070005);
      const first = await cleanUp(host, hns, true);
      const { changes } = JSON.parse(first.stdout) as { changes: { step: string; did: string; problem?: string }[] };
      expect(first.status).toBe(1);
      expect(changes.filter(({ did }) => did === "failed").map(({ step }) => step)).toEqual(failed);
      expect(first.stderr).toMatch(/80070005/i);
      expect(changes.some(({ step }) => step === "hand back")).toBe(false);
      expect(host.node.state.nats).toEqual([]);
      const second = await cleanUp(host, hns);
      expect(second.status).toBe(0);
      expect(host.snapshot()).toEqual(fresh);
    },
  );

  test("a network that was there before stays, and of its endpoints goes what is on record as ours", async () => {
    using host = new HostFixture();
    makeHnsNetwork(host.node.state, "pipette", true);
    const before = host.snapshot();
    const hns = await standing(host);
    const records = EndpointRecords.open(endpointRecords(host.dataDir));
    for (const n of [1, 9]) {
      const owner = { network: "pods", sandboxId: `${n}`, ifname: "eth0" };
      records.put(`0b0b0b0b-0000-4000-8000-00000000000${n}`, { owner, ownLease: true });
    }
    hns.fail("deleteEndpoint", 0x80070005);
    const failed = await cleanUp(host, hns);
    expect(failed.status).toBe(1);
    expect(failed.stderr).toMatch(/80070005/i);
    expect(host.snapshot()).toEqual(before);

    const { status, stdout } = await cleanUp(host, hns);
    expect([status, stdout]).toEqual([
      0,
      'STEP          WHAT               DID\nhns endpoint  "pod-1" 10.10.1.1  undone\n',
    ]);
    expect(hns.networks.length).toBe(2);
    expect(hns.endpoints.map((endpoint) => endpoint["Name"])).toEqual(["pod-2", "pod-3"]);
    expect((await cleanUp(host, hns)).stdout).toMatch(/^nothing on record/);
  });
});

test("two networks have a record each: one's set-up leaves the other's alone, and clean-up takes both away", async () => {
  using host = new HostFixture({ bridgeName: "", gatewayInterface: "Ethernet0", ovsExtension: false, peers: [] });
  const fresh = host.snapshot();
  const other = {
    ...host.settings,
    hnsNetwork: "CON: *?",
    podSubnet: cidr("10.30.0.0/24"),
    gateway: ip("10.30.0.1"),
    natName: "b",
  };
  await setUpHost(host.settings, host.run);
  await setUpHost(other, host.run);
  const acts = host.node.done.length;
  await setUpHost(host.settings, host.run);
  await setUpHost({ ...other, hnsNetwork: "con: *?" }, host.run);
  expect(host.node.done).toHaveLength(acts);
  expect(host.node.state.nats.map((nat) => nat["Name"])).toEqual(["pipette-nat", "b"]);
  expect((await handBackAddress(host.dataDir, host.run)).changes).toEqual([]);
  await host.cleanUp();
  expect(host.snapshot()).toEqual(fresh);
});
