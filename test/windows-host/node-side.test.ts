import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createNodeSide, type HnsNetwork } from "../../agent/datapath/hns/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { deleteHnsNetwork, makeHnsNetwork, makeInternalPort } from "./node-state.ts";
import { gateway } from "./ovs-gateway-fixture.ts";
import { cidr, HostFixture, ip } from "./set-up-fixture.ts";

let host: HostFixture;
let lines: { readonly message: string; readonly changes?: readonly { readonly what: string }[] }[];

beforeEach(() => {
  host = new HostFixture();
  lines = [];
});
afterEach(() => host[Symbol.dispose]());

const hns: HnsNetwork["hns"] = {
  network: "pipette",
  type: "Transparent",
  nodeAddress: ip("192.168.1.5"),
  natName: "pipette-nat",
  ovsExtension: true,
  policies: [],
  peers: [],
};
const network: HnsNetwork = { name: "pods", subnet: cidr("10.10.1.0/24"), bridge: "br-int", mtu: 1400, hns };
const overlay: HnsNetwork = { ...network, overlayGateway: gateway };

const side = () =>
  createNodeSide(
    host.dataDir,
    host.run,
    createLogger("info", (line) => lines.push(JSON.parse(line))),
  );

/** The node as it is when the agent has made the network of the overlay, with the gateway's port. */
async function standing(): Promise<ReturnType<typeof side>> {
  const own = side();
  await own.prepare(overlay);
  makeHnsNetwork(host.node.state, "pipette", true);
  await own.setUp(overlay);
  makeInternalPort(host.node.state, gateway);
  return own;
}
const useGateway = {
  mac: "02:00:5e:10:00:01",
  addresses: [cidr("10.10.1.1/24")],
  mtu: 1350,
} as unknown as Parameters<ReturnType<ReturnType<typeof side>["hostNetworkOf"]>["useGateway"]>[0];

describe("the node around an HNS network", () => {
  test("is set up whole, once, and says what was made", async () => {
    const own = side();
    expect(await own.prepare(network)).toMatchObject({ alias: "Ethernet0", prefixLength: 24 });
    makeHnsNetwork(host.node.state, "pipette", true);
    await own.setUp(network);
    const { state } = host.node;
    expect(state.adapters.map((entry) => entry["Name"])).toContain("br-int");
    expect(state.interfaces.at(-1)).toMatchObject({ NlMtu: 1400, Forwarding: "Enabled" });
    expect(state.nats).toEqual([{ Name: "pipette-nat", InternalIPInterfaceAddressPrefix: "10.10.1.0/24" }]);
    expect(lines).toMatchObject([{ message: "set the node up", network: "pods" }]);
    await own.setUp(network);
    expect(lines).toHaveLength(1);
  });

  test("is made on the card that the configuration names", async () => {
    const named = (adapter: string) => side().prepare({ ...network, hns: { ...hns, adapter } });
    await expect(named("Ethernet1")).rejects.toThrow('it on "Ethernet1"');
    expect((await named("Ethernet0")).alias).toBe("Ethernet0");
  });

  test("gets its card's address back when the network has gone", async () => {
    host.moves = false;
    const own = side();
    await own.prepare(network);
    makeHnsNetwork(host.node.state, "pipette", false);
    deleteHnsNetwork(host.node.state, "pipette", false);
    await own.handBack(network);
    expect(host.node.state.addresses.map((entry) => entry["IPAddress"])).toContain("192.168.1.5");
    expect(lines.at(-1)?.message).toBe("the node's card has its address back");
    expect(() => own.cardOf(network)).toThrow("no record says which it was");
  });

  test("is changed by one call at a time, and by the next after one that failed", async () => {
    const order: string[] = [];
    const { run } = host;
    const own = createNodeSide(
      host.dataDir,
      {
        ...run,
        run: async (action, statements) => {
          order.push("begin");
          await Bun.sleep(0);
          order.push("end");
          return run.run(action, statements);
        },
      },
      createLogger("error", () => undefined),
    );
    const wrong = own.prepare({ ...network, hns: { ...hns, nodeAddress: ip("192.168.9.9") } });
    const right = own.prepare(network);
    await expect(wrong).rejects.toThrow("no adapter holds 192.168.9.9");
    expect((await right).alias).toBe("Ethernet0");
    expect(order).toEqual(["begin", "end", "begin", "end"]);
  });
});

describe("the node's own network around Open vSwitch's bridge", () => {
  test("has the card's addresses on the switch's adapter, and leaves the rest to the system", async () => {
    const own = await standing();
    expect(own.cardOf(overlay)).toEqual({
      name: "Ethernet0",
      mac: "00:15:5d:01:02:03",
      address: cidr("192.168.1.5/24"),
    });
    const network = own.hostNetworkOf(overlay);
    expect([await network.macOf(""), await network.hasInterface("")]).toEqual(["00:15:5d:01:02:03", true]);
    expect(host.node.state.nats).toEqual([]);
  });

  test("gets a gateway and routes, and both again after the network was lost", async () => {
    const network = (await standing()).hostNetworkOf(overlay);
    await network.again();
    await network.useGateway({ ...useGateway, addresses: [] });
    expect(host.node.state.nats).toEqual([]);
    await network.useGateway(useGateway);
    const routes = [
      { dst: cidr("10.10.2.0/24"), via: ip("10.10.2.1"), by: "gateway" },
      { dst: cidr("10.96.0.0/16"), via: ip("169.254.0.253"), by: "gateway", mac: "aa:bb:cc:dd:ee:ff" },
      { dst: cidr("10.10.3.0/24"), via: ip("192.168.1.6"), by: "transport" },
    ] as const;
    expect(await network.setRoutes(routes)).toEqual([]);
    const { state } = host.node;
    const port = state.adapters.find((entry) => entry["Name"] === gateway);
    expect(port).toMatchObject({ MacAddress: "02-00-5E-10-00-01", Status: "Up" });
    expect(state.interfaces.find((entry) => entry["InterfaceIndex"] === port?.["InterfaceIndex"])).toMatchObject({
      NlMtu: 1350,
    });
    const ways = () =>
      state.routes.map((entry) => `${entry["DestinationPrefix"]} ${entry["NextHop"]} ${entry["InterfaceIndex"]}`);
    const [own, bridge] = [port?.["InterfaceIndex"], 21];
    const wanted = [
      `10.10.2.0/24 10.10.2.1 ${own}`,
      `10.96.0.0/16 169.254.0.253 ${own}`,
      `10.10.3.0/24 192.168.1.6 ${bridge}`,
    ];
    expect(ways()).toEqual(expect.arrayContaining(wanted));
    state.routes = state.routes.filter((entry) => !String(entry["DestinationPrefix"]).startsWith("10."));
    state.addresses = state.addresses.filter((entry) => entry["IPAddress"] !== "10.10.1.1");
    await network.again();
    expect(ways()).toEqual(expect.arrayContaining(wanted));
    expect(state.addresses.map((entry) => entry["IPAddress"])).toContain("10.10.1.1");
  });

  test.each(["10.10.2.0/24", "169.254.0.253/32", "169.254.0.253"])(
    "tells of a route that goes without what Windows refuses: %s",
    async (refused) => {
      const network = (await standing()).hostNetworkOf(overlay);
      await network.useGateway(useGateway);
      host.node.refusedTargets.add(refused);
      const route = {
        dst: cidr("10.10.2.0/24"),
        via: ip("169.254.0.253"),
        by: "gateway",
        mac: "aa:bb:cc:dd:ee:ff",
      } as const;
      const other = { dst: cidr("10.10.3.0/24"), via: ip("10.10.3.1"), by: "gateway" } as const;
      expect(await network.setRoutes([route, other])).toEqual([{ route, why: expect.stringContaining("says") }]);
    },
  );
});
