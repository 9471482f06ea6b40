import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { prepareHost, setUpHost } from "../../agent/datapath/hns/windows-host/mod.ts";
import { formatCidr, formatIp } from "../../shared/net/ip.ts";
import { deleteInternalPort, makeHnsNetwork, makeInternalPort } from "./node-state.ts";
import { gateway, OvsNode, toNode, toServices } from "./ovs-gateway-fixture.ts";
import { cidr, ip } from "./set-up-fixture.ts";

const always = ["10.10.1.0/24 0.0.0.0", "10.96.0.0/16 169.254.0.253", "169.254.0.253/32 0.0.0.0"];

describe("a gateway that is a port of Open vSwitch's", () => {
  test("is switched on and gets hardware address, address, MTU, forwarding, routes and the declared neighbour, once", async () => {
    using host = new OvsNode();
    const fresh = host.snapshot();
    await host.start();
    const { state } = host.node;
    expect(host.adapter).toMatchObject({ Status: "Up", MacAddress: "02-00-5E-10-00-01" });
    const index = host.adapter?.["InterfaceIndex"];
    expect(state.addresses.filter((entry) => entry["InterfaceIndex"] === index)).toEqual([
      { IPAddress: "10.10.1.1", InterfaceIndex: index, PrefixLength: 24, PolicyStore: "ActiveStore" },
    ]);
    const interfaces = state.interfaces.map((entry) => [entry["InterfaceIndex"], entry["Forwarding"], entry["NlMtu"]]);
    expect(interfaces.slice(-2)).toEqual([
      [21, "Enabled", 1500],
      [index, "Enabled", 1450],
    ]);
    expect(host.routes).toEqual([
      ...always.slice(0, 1),
      "10.10.2.0/24 10.10.2.1",
      "10.10.3.0/24 10.10.3.1",
      ...always.slice(1),
    ]);
    expect(host.neighbours).toEqual(["169.254.0.253 AA-BB-CC-DD-EE-FF"]);
    expect(state.nats).toEqual([{ Name: "pipette-nat", InternalIPInterfaceAddressPrefix: "10.10.1.0/24" }]);

    const [standing, acts] = [host.snapshot(), host.node.done.length];
    await host.start();
    expect([host.snapshot(), host.node.done.length]).toEqual([standing, acts]);

    const { changes } = await host.cleanUp();
    expect(changes.filter(({ did }) => did === "failed")).toEqual([]);
    expect([host.routes, host.neighbours, state.nats]).toEqual([[], [], []]);
    deleteInternalPort(state);
    expect(host.snapshot()).toEqual(fresh);
    expect(existsSync(join(host.dataDir, "windows-host"))).toBe(false);
  });

  test("has routes to other nodes by difference, and a set-up of another part takes none of them away", async () => {
    using host = new OvsNode();
    await host.start();
    const acts = host.node.done.length;
    await host.route([toServices, toNode(3), toNode(4)]);
    expect(host.node.done.slice(acts)).toEqual(["Remove-NetRoute", "New-NetRoute"]);
    expect(host.routes).toEqual([
      ...always.slice(0, 1),
      "10.10.3.0/24 10.10.3.1",
      "10.10.4.0/24 10.10.4.1",
      ...always.slice(1),
    ]);
    const [standing, after] = [host.snapshot(), host.node.done.length];
    for (const part of ["switch", "gateway"] as const) await setUpHost(host.settings, host.run, part);
    expect([host.snapshot(), host.node.done.length]).toEqual([standing, after]);
    await host.route([]);
    expect([host.routes, host.neighbours]).toEqual([["10.10.1.0/24 0.0.0.0"], []]);
  });

  test("goes without a route or a neighbour that Windows refuses, or that somebody else has; the others come and stale ones go", async () => {
    using host = new OvsNode();
    await host.start();
    const { node } = host;
    node.refusedTargets.add("224.0.0.0/4").add("10.10.7.1");
    node.state.routes.push({
      InterfaceIndex: 7,
      DestinationPrefix: "10.10.9.0/24",
      NextHop: "192.168.1.1",
      RouteMetric: 1,
    });
    const others = Array.from({ length: 20 }, (_, i) => toNode(20 + i));
    const multicast = { ...toNode(0), destination: cidr("224.0.0.0/4"), nextHop: ip("224.0.0.1") };
    const declared = { ...toNode(7), nextHopMac: "aa:bb:cc:dd:ee:ff" };
    const refused = await host.route([toServices, ...others, multicast, toNode(9), declared, toNode(3)]);
    expect(refused?.map(({ thing }) => thing["destination"] ?? thing["address"])).toEqual([
      "10.10.9.0/24",
      "224.0.0.0/4",
      "10.10.7.1",
    ]);
    expect(refused?.[0]?.why).toContain("10.10.9.0/24 goes through 192.168.1.1");
    expect(refused?.[1]?.why).toContain("New-NetRoute says");
    const wanted = [...others, declared, toNode(3)].map(
      ({ destination, nextHop }) => `${formatCidr(destination)} ${formatIp(nextHop)}`,
    );
    expect(host.routes).toEqual([...always, ...wanted].sort());
    expect(host.neighbours).toEqual(["169.254.0.253 AA-BB-CC-DD-EE-FF"]);
    // Whatever stands in the way goes some day.
    node.refusedTargets.clear();
    node.state.routes = node.state.routes.filter((entry) => entry["NextHop"] !== "192.168.1.1");
    expect(await host.route([toServices, toNode(9), declared])).toEqual([]);
    expect(host.routes).toEqual([...always, "10.10.7.0/24 10.10.7.1", "10.10.9.0/24 10.10.9.1"].sort());
  });

  test("keeps a static peer's route whatever the registry says of the same pods", async () => {
    using host = new OvsNode({ peers: [{ podSubnet: cidr("10.10.2.0/24"), gateway: ip("10.10.2.1") }] });
    await host.start([{ ...toNode(2), nextHop: ip("192.168.1.6"), alias: "br-int" }]);
    expect(host.routes).toContain("10.10.2.0/24 10.10.2.1");
    await host.route([]);
    expect(host.routes).toContain("10.10.2.0/24 10.10.2.1");
  });

  test("replaces what Windows has learned of the declared neighbour, and an address of another length", async () => {
    using host = new OvsNode();
    await host.start([]);
    const { state } = host.node;
    const InterfaceIndex = host.adapter?.["InterfaceIndex"] ?? 0;
    const learned = { InterfaceIndex, IPAddress: "169.254.0.253", LinkLayerAddress: "", State: "Unreachable" };
    state.neighbours.push(learned, { ...learned, InterfaceIndex: 7 });
    for (const entry of state.addresses) if (entry["IPAddress"] === "10.10.1.1") entry["PrefixLength"] = 32;
    await host.start();
    expect(state.neighbours.map((entry) => [entry["InterfaceIndex"], entry["State"]])).toEqual([
      [7, "Unreachable"],
      [InterfaceIndex, "Permanent"],
    ]);
    expect(state.addresses.find((entry) => entry["IPAddress"] === "10.10.1.1")).toMatchObject({ PrefixLength: 24 });
  });

  test("is waited for, and its lack named", async () => {
    using host = new OvsNode();
    await prepareHost(host.settings, host.run);
    makeHnsNetwork(host.node.state, "pipette", true);
    await setUpHost(host.settings, host.run, "switch");
    await expect(setUpHost(host.settings, host.run, "gateway")).rejects.toThrow(
      "Cannot switch the gateway's adapter on: no adapter is called \"pipette-gw0\", wanted the one of Open vSwitch's internal port",
    );
    let looks = 0;
    const late = {
      ...host.run,
      pause: async () => {
        looks += 1;
        if (looks === 3) makeInternalPort(host.node.state, gateway);
      },
    };
    await setUpHost(host.settings, late, "gateway");
    expect(host.adapter?.["Status"]).toBe("Up");
  });

  test("whose address stands on another adapter is an error that names it, and that address stays", async () => {
    using host = new OvsNode();
    host.node.state.addresses.push({ IPAddress: "10.10.1.1", InterfaceIndex: 1, PrefixLength: 24 });
    await expect(host.start()).rejects.toThrow('10.10.1.1 is on "Loopback Pseudo-Interface 1"');
    expect(host.node.state.addresses).toContainEqual({ IPAddress: "10.10.1.1", InterfaceIndex: 1, PrefixLength: 24 });
  });
});

describe("killed in the set-up of such a gateway", () => {
  const acts = 17;
  test("it has as many changes as are gone through below", async () => {
    using host = new OvsNode();
    await host.start();
    expect(host.node.done).toHaveLength(acts);
  });

  test.each(Array.from({ length: acts }, (_, at) => at))(
    "after %i changes, the next run ends where an untouched one does, and clean-up leaves nothing",
    async (at) => {
      using untouched = new OvsNode();
      await untouched.start();
      using host = new OvsNode();
      const fresh = host.snapshot();
      host.node.killAfter(at, "after the last");
      await expect(host.start()).rejects.toThrow("the agent is dead");
      host.node.revive();
      await host.start();
      expect(host.snapshot()).toEqual(untouched.snapshot());
      expect((await host.cleanUp()).changes.filter(({ did }) => did === "failed")).toEqual([]);
      deleteInternalPort(host.node.state);
      expect(host.snapshot()).toEqual(fresh);
    },
  );
});
