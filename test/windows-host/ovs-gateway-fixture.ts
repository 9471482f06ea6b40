import { type HostSettings, prepareHost, setUpHost } from "../../agent/datapath/hns/windows-host/mod.ts";
import { makeHnsNetwork, makeInternalPort } from "./node-state.ts";
import { cidr, HostFixture, ip } from "./set-up-fixture.ts";

export const gateway = "pipette-gw0";
const gatewayPort = { mac: "02:00:5e:10:00:01", address: cidr("10.10.1.1/24") };
export const toNode = (n: number) => ({
  destination: cidr(`10.10.${n}.0/24`),
  nextHop: ip(`10.10.${n}.1`),
  alias: gateway,
});
export const toServices = {
  destination: cidr("10.96.0.0/16"),
  nextHop: ip("169.254.0.253"),
  alias: gateway,
  nextHopMac: "aa:bb:cc:dd:ee:ff",
};

/** A node whose gateway is a port of Open vSwitch's, set up as the agent does it: switch, bridge and ports, gateway, routes. */
export class OvsNode extends HostFixture {
  constructor(changes: Partial<HostSettings> = {}) {
    super({ gatewayInterface: gateway, gatewayPort, peers: [], ...changes });
  }

  override async start(routes: HostSettings["routes"] = [toServices, toNode(2), toNode(3)]): Promise<void> {
    const { state } = this.node;
    if (!state.switches.some((entry) => entry["Name"] === this.settings.hnsNetwork)) {
      await prepareHost(this.settings, this.run);
      makeHnsNetwork(state, this.settings.hnsNetwork, true);
    }
    await setUpHost(this.settings, this.run, "switch");
    if (!state.adapters.some((entry) => entry["Name"] === gateway)) makeInternalPort(state, gateway);
    await setUpHost(this.settings, this.run, "gateway");
    await this.route(routes);
  }

  /** @returns what is refused */
  async route(routes: NonNullable<HostSettings["routes"]>) {
    return (await setUpHost({ ...this.settings, routes }, this.run, "routes")).refused;
  }

  get adapter() {
    return this.node.state.adapters.find((entry) => entry["Name"] === gateway);
  }

  /** Through the gateway, in no order. */
  get routes(): readonly string[] {
    const own = this.node.state.routes.filter((entry) => entry["InterfaceIndex"] === this.adapter?.["InterfaceIndex"]);
    return own.map((entry) => `${entry["DestinationPrefix"]} ${entry["NextHop"]}`).sort();
  }

  get neighbours(): readonly string[] {
    return this.node.state.neighbours.map((entry) => `${entry["IPAddress"]} ${entry["LinkLayerAddress"]}`);
  }
}
