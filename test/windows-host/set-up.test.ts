import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { setUpHost } from "../../agent/datapath/hns/windows-host/mod.ts";
import { deleteHnsNetwork, type Item, type NodeState } from "./node-state.ts";
import { cidr, HostFixture, ip, restored, steps } from "./set-up-fixture.ts";

describe("a node that Windows helps with", () => {
  test("becomes what the settings say, once, and as it was again", async () => {
    using host = new HostFixture();
    const fresh = host.snapshot();
    await host.start();
    expect(host.node.done).toEqual(steps);
    // The card, the node as it is, and nine steps with a look behind each.
    expect(host.node.processes).toBe(1 + 1 + 9);
    const { state } = host.node;
    expect(state.adapters.map((entry) => entry["Name"])).toEqual(["Ethernet0", "br-int"]);
    expect(state.vmAdapters[0]?.["Name"]).toBe("br-int");
    expect(state.extensions.map((entry) => entry["Enabled"])).toEqual([true, true]);
    expect(state.interfaces.at(-1)).toMatchObject({ Forwarding: "Enabled", NlMtu: 1450 });
    expect(state.nats).toEqual([{ Name: "pipette-nat", InternalIPInterfaceAddressPrefix: "10.10.1.0/24" }]);
    expect(podRoutesOf(state)).toEqual(["10.10.1.0/24 0.0.0.0", "10.10.2.0/24 10.10.2.1", "10.10.3.0/24 10.10.3.1"]);

    const [standing, processes] = [host.snapshot(), host.node.processes];
    await host.start();
    expect(host.node.done).toEqual(steps);
    expect(host.snapshot()).toEqual(standing);
    // One look tells that there is nothing to do.
    expect(host.node.processes - processes).toBe(1);

    const { changes } = await host.cleanUp();
    expect(host.snapshot()).toEqual(fresh);
    expect(changes.map(({ step, did }) => `${step}: ${did}`)).toEqual([
      "nat: undone",
      "peer routes: undone",
      "peer routes: undone",
      "pod route: undone",
      "mtu: undone",
      "forwarding: undone",
      "software rsc: undone",
      "ovs extension: undone",
      "adapter name: undone",
      "switch adapter name: undone",
      "hns network: undone",
      "hand back: was there",
    ]);
    expect(existsSync(join(host.dataDir, "windows-host"))).toBe(false);
    const acts = host.node.done.length;
    expect((await host.cleanUp()).changes).toEqual([]);
    expect(host.node.done).toHaveLength(acts);
  });

  test("has routes to a thousand nodes in few processes, none with a longer command line than Windows takes", async () => {
    const peers = Array.from({ length: 1000 }, (_, i) => {
      const block = `10.${100 + (i >> 8)}.${i & 255}`;
      return { podSubnet: cidr(`${block}.0/24`), gateway: ip(`${block}.1`) };
    });
    using host = new HostFixture({
      peers: [...peers, ...peers.slice(0, 3)],
      bridgeName: "",
      gatewayInterface: "Ethernet0",
      natName: "",
      ovsExtension: false,
    });
    const fresh = host.snapshot();
    await setUpHost(host.settings, host.run);
    expect(host.node.state.routes).toHaveLength(3 + 1 + 1000);
    expect(host.node.processes).toBeLessThan(50);
    await host.cleanUp();
    expect(host.snapshot()).toEqual(fresh);
    expect(host.node.longestScript).toBeGreaterThan(6000);
    expect(Math.ceil((host.node.longestScript * 2) / 3) * 4).toBeLessThan(32_000);
  });

  test("gets only what is asked for, and Hyper-V's module is not needed for the rest", async () => {
    using host = new HostFixture({
      bridgeName: "",
      gatewayInterface: "Ethernet0",
      natName: "",
      ovsExtension: false,
      peers: [],
    });
    delete (host.settings as { mtu?: number }).mtu;
    host.node.state.switches.push({ Name: "pipette", SoftwareRscEnabled: false });
    const seen: string[] = [];
    const run = {
      ...host.run,
      run: (action: string, all: Parameters<typeof host.run.run>[1]) => {
        seen.push(...all.map(({ cmdlet }) => cmdlet));
        return host.run.run(action, all);
      },
    };
    await setUpHost(host.settings, run);
    expect(host.node.done).toEqual(["Set-NetIPInterface", "New-NetRoute"]);
    expect(seen.filter((cmdlet) => cmdlet.includes("-VM"))).toEqual([]);
  });
});

test("where Windows drops the address, it comes back to the switch's adapter, and then to the card", async () => {
  using host = new HostFixture();
  host.moves = false;
  const fresh = host.snapshot() as Record<string, unknown>;
  await host.start();
  expect(host.node.done).toEqual([...steps.slice(0, 2), ...restored, ...steps.slice(2)]);
  const own = (entry: Item): boolean => entry["InterfaceIndex"] === 21;
  expect(host.node.state.addresses.filter(own)).toEqual([
    { IPAddress: "192.168.1.5", PrefixLength: 24, InterfaceIndex: 21 },
  ]);
  expect(host.node.state.dnsServers.find(own)?.["ServerAddresses"]).toEqual(["192.168.1.2", "192.168.1.3"]);
  expect(routesOf(host.node.state)).toContain("0.0.0.0/0 192.168.1.1");
  expect(routesOf(host.node.state)).toContain("10.96.0.0/12 192.168.1.1");
  await host.start();
  expect(host.node.done).toHaveLength(steps.length + restored.length);

  host.node.done.length = 0;
  const { changes } = await host.cleanUp();
  expect(changes.at(-1)).toEqual({ step: "hand back", what: '192.168.1.5/24 on "Ethernet0"', did: "made" });
  expect(host.node.done.slice(-3)).toEqual(restored);
  // Windows makes the on-link route of an address by itself, which this node does not.
  const { routes: _fresh, ...before } = fresh;
  const { routes, ...after } = host.snapshot() as Record<string, unknown>;
  expect(after).toEqual(before);
  expect(routes).toHaveLength(2);
});

describe("what is believed", () => {
  const cmdlets = [...new Set([...steps, ...restored])];
  test.each(cmdlets)("%s that says it is done and is not fails, with its step", async (cmdlet) => {
    using host = new HostFixture();
    host.moves = false;
    host.node.lying.add(cmdlet);
    await expect(host.start()).rejects.toThrow(/^Cannot .+: .+ after PowerShell said it was done$/);
    host.node.lying.clear();
    await host.start();
    expect((await host.cleanUp()).changes.filter(({ did }) => did === "failed")).toEqual([]);
  });

  test.each(["Remove-NetNat", "Remove-NetRoute", "Disable-VMSwitchExtension"])(
    "%s that says it is done and is not is reported, the rest goes on, and the next clean-up does it",
    async (cmdlet) => {
      using host = new HostFixture();
      const fresh = host.snapshot();
      await host.start();
      host.node.lying.add(cmdlet);
      const { changes } = await host.cleanUp();
      const failed = changes.filter(({ did }) => did === "failed");
      expect(failed.length).toBeGreaterThan(0);
      expect(failed[0]?.problem).toMatch(/still there after PowerShell said it was done/);
      expect(changes.filter(({ did }) => did === "undone").length).toBeGreaterThan(5);
      host.node.lying.clear();
      await host.cleanUp();
      expect(host.snapshot()).toEqual(fresh);
    },
  );

  test("names stay while something that is found by them could not be undone", async () => {
    using host = new HostFixture();
    await host.start();
    const path = join(host.dataDir, "windows-host/pipette.json");
    // As if the network had been there before.
    const { adapter: _ours, ...record } = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    await Bun.write(path, JSON.stringify(record));
    host.node.lying.add("Remove-NetRoute");
    const { changes } = await host.cleanUp();
    expect(changes.filter(({ step }) => step.endsWith("name")).map(({ did }) => did)).toEqual(["failed", "failed"]);
    expect(host.node.state.adapters[1]?.["Name"]).toBe("br-int");
    host.node.lying.clear();
    expect((await host.cleanUp()).changes.map(({ did }) => did)).toEqual(Array.from({ length: 5 }, () => "undone"));
    expect(host.node.state.adapters[1]?.["Name"]).toBe("vEthernet (Ethernet0)");
  });

  test("a name that Windows takes back once is given again", async () => {
    using host = new HostFixture();
    let renamed = 0;
    host.node.afterwards = (cmdlet) => {
      if (cmdlet !== "New-NetNat" || renamed++ > 0) return;
      host.node.state.adapters[1]!["Name"] = "vEthernet (br-int)";
    };
    await host.start();
    expect(host.node.state.adapters[1]?.["Name"]).toBe("br-int");
  });
});

describe("what the settings no longer ask for goes", () => {
  test("a peer that has left, another MTU, another NetNat, another pod subnet", async () => {
    using host = new HostFixture();
    const fresh = host.snapshot();
    await host.start();
    host.settings = {
      ...host.settings,
      peers: host.settings.peers.slice(1),
      mtu: 1400,
      natName: "other",
      podSubnet: cidr("10.20.1.0/24"),
      gateway: ip("10.20.1.1"),
    };
    await host.start();
    expect(podRoutesOf(host.node.state)).toEqual(["10.10.3.0/24 10.10.3.1", "10.20.1.0/24 0.0.0.0"]);
    expect(host.node.state.nats).toEqual([{ Name: "other", InternalIPInterfaceAddressPrefix: "10.20.1.0/24" }]);
    expect(host.node.state.interfaces.at(-1)?.["NlMtu"]).toBe(1400);
    await host.cleanUp();
    expect(host.snapshot()).toEqual(fresh);
  });

  test("a NetNat of our name with another prefix is made anew, even without a record", async () => {
    using host = new HostFixture();
    host.node.state.nats.push({ Name: "Pipette-NAT", InternalIPInterfaceAddressPrefix: "10.99.0.0/16" });
    await host.start();
    expect(host.node.state.nats).toEqual([{ Name: "pipette-nat", InternalIPInterfaceAddressPrefix: "10.10.1.0/24" }]);
  });

  test("nothing is left of an earlier boot, and the node is set up anew", async () => {
    using host = new HostFixture();
    const fresh = host.snapshot();
    await host.start();
    const { state } = host.node;
    state.routes = state.routes.filter((route) => !String(route["DestinationPrefix"]).startsWith("10.10."));
    deleteHnsNetwork(state, "pipette", true);
    await host.start();
    await host.cleanUp();
    expect(host.snapshot()).toEqual(fresh);
  });
});

describe("what belongs to somebody else", () => {
  const cases: [string, (state: NodeState) => void, string][] = [
    [
      "a NetNat of that prefix",
      (state) => state.nats.push({ Name: "docker", InternalIPInterfaceAddressPrefix: "10.10.0.0/16" }),
      'Cannot make the NetNat for the pod subnet: NetNat "docker" has 10.10.0.0/16, wanted none for 10.10.1.0/24 but ours, "pipette-nat"',
    ],
    [
      "a route to that block",
      (state) =>
        state.routes.push({
          InterfaceIndex: 1,
          DestinationPrefix: "10.10.2.0/24",
          NextHop: "192.168.1.9",
          RouteMetric: 1,
        }),
      `Cannot add the route to another node's pods: 10.10.2.0/24 goes through 192.168.1.9 on "Loopback Pseudo-Interface 1", wanted no route to it but ours, through 10.10.2.1 on "br-int"`,
    ],
    [
      "an adapter of that name",
      (state) =>
        state.adapters.push({ Name: "BR-INT", InterfaceIndex: 30, MacAddress: "00-15-5D-00-00-09", Virtual: true }),
      'Cannot rename the virtual adapter: "br-int" is an adapter with address 00155d000009, wanted that name free for the one with 00155d010203',
    ],
    [
      "the gateway's address",
      (state) => state.addresses.push({ IPAddress: "10.10.1.1", InterfaceIndex: 1, PrefixLength: 24 }),
      'Cannot add the route to the pod subnet: 10.10.1.1 is on "Loopback Pseudo-Interface 1", wanted it on "br-int" or on none',
    ],
  ];
  test.each(cases)("%s is an error and stays", async (_what, put, message) => {
    using host = new HostFixture();
    put(host.node.state);
    const fresh = host.snapshot();
    await expect(host.start()).rejects.toThrow(message);
    await host.cleanUp();
    expect(host.snapshot()).toEqual(fresh);
  });

  test("a value that somebody has changed since is not put back", async () => {
    using host = new HostFixture({ bridgeName: "", gatewayInterface: "Ethernet0", ovsExtension: false });
    await setUpHost(host.settings, host.run);
    host.node.state.interfaces[1]!["NlMtu"] = 9000;
    host.node.state.nats[0]!["InternalIPInterfaceAddressPrefix"] = "10.77.0.0/16";
    await host.cleanUp();
    expect(host.node.state.interfaces[1]).toMatchObject({ NlMtu: 9000, Forwarding: "Disabled" });
    expect(host.node.state.nats).toHaveLength(1);
  });

  test("what was right already is not taken for ours", async () => {
    using host = new HostFixture({ bridgeName: "", gatewayInterface: "Ethernet0", ovsExtension: false, peers: [] });
    host.node.state.interfaces[1] = { ...host.node.state.interfaces[1], Forwarding: "Enabled", NlMtu: 1450 };
    host.node.state.nats.push({ Name: "pipette-nat", InternalIPInterfaceAddressPrefix: "10.10.1.0/24" });
    host.node.state.routes.push({
      InterfaceIndex: 7,
      DestinationPrefix: "10.10.1.0/24",
      NextHop: "0.0.0.0",
      RouteMetric: 256,
    });
    const fresh = host.snapshot();
    await setUpHost(host.settings, host.run);
    expect(host.node.done).toEqual([]);
    await host.cleanUp();
    expect(host.snapshot()).toEqual(fresh);
  });
});

test("what another version has made stays on record, and clean-up says so", async () => {
  using host = new HostFixture();
  await host.start();
  const path = join(host.dataDir, "windows-host/pipette.json");
  const record = JSON.parse(readFileSync(path, "utf8")) as { entries: unknown[] };
  record.entries.push({ step: "firewall", thing: { rule: "x" } });
  await Bun.write(path, JSON.stringify(record));
  await host.start();
  const { changes } = await host.cleanUp();
  expect(changes.filter(({ did }) => did === "failed")).toEqual([
    {
      step: "firewall",
      what: '{"rule":"x"}',
      did: "failed",
      problem: `Cannot undo step "firewall" of "${path}": this version has no such step, wanted the version that made it`,
    },
  ]);
  expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
    version: 1,
    network: "pipette",
    entries: [{ step: "firewall", thing: { rule: "x" } }],
  });
});

test("a record that cannot be read is an error that names it, and nothing is done", async () => {
  using host = new HostFixture();
  await host.start();
  const path = join(host.dataDir, "windows-host/pipette.json");
  const text = readFileSync(path, "utf8");
  for (const broken of [text.slice(0, 50), "", "[]", "{}", text.replace('"version": 1', '"version": 2')]) {
    await Bun.write(path, broken);
    const acts = host.node.done.length;
    await expect(host.cleanUp()).rejects.toThrow(path);
    await expect(host.start()).rejects.toThrow(path);
    expect(host.node.done).toHaveLength(acts);
  }
});

/** Of the switch's adapter. */
const routesOf = (state: NodeState): string[] =>
  state.routes
    .filter((route) => route["InterfaceIndex"] === 21)
    .map((route) => `${route["DestinationPrefix"]} ${route["NextHop"]}`)
    .sort();

const podRoutesOf = (state: NodeState): string[] => routesOf(state).filter((text) => /^10\.[12]0\./.test(text));
