import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  cleanUpHost,
  type HostRunner,
  type HostSettings,
  prepareHost,
  setUpHost,
} from "../../agent/datapath/hns/windows-host/mod.ts";
import { createHostRunner } from "../../agent/datapath/hns/windows-host/powershell.ts";
import { type Cidr, type Ip, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { NodeInMemory } from "./node-in-memory.ts";
import { deleteHnsNetwork, freshNode, makeHnsNetwork, type NodeState } from "./node-state.ts";

export const ip = (text: string): Ip => parseIp(text)!;
export const cidr = (text: string): Cidr => parseCidr(text)!;

export const exampleSettings = (dataDir: string): HostSettings => ({
  dataDir,
  nodeAddress: ip("192.168.1.5"),
  podSubnet: cidr("10.10.1.0/24"),
  gateway: ip("10.10.1.1"),
  gatewayInterface: "br-int",
  bridgeName: "br-int",
  natName: "pipette-nat",
  mtu: 1450,
  peers: [
    { podSubnet: cidr("10.10.2.0/24"), gateway: ip("10.10.2.1") },
    { podSubnet: cidr("10.10.3.0/24"), gateway: ip("10.10.3.1") },
  ],
  ovsExtension: true,
  hnsNetwork: "pipette",
});

/** What changes a node in the example's set-up, in its order; behind the first two, where Windows has dropped the address, comes `restored`. */
export const steps = [
  ["Rename-VMNetworkAdapter", "Rename-NetAdapter", "Enable-VMSwitchExtension", "Set-VMSwitch"],
  ["Set-NetIPInterface", "Set-NetIPInterface", "New-NetRoute", "New-NetRoute", "New-NetRoute", "New-NetNat"],
].flat();
export const restored = ["New-NetIPAddress", "Set-DnsClientServerAddress", "New-NetRoute"];

/** Thousands of small files are synced here, and no test cuts the power. */
const inMemory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A node, a data directory, and an agent that can die at any point of the way from a fresh node to a clean one. */
export class HostFixture implements Disposable {
  readonly dataDir = mkdtempSync(join(inMemory, "pipette-host-"));
  readonly node: NodeInMemory;
  settings: HostSettings;
  /** Whether Windows moves the address to the switch's adapter, and back. */
  moves = true;

  constructor(changes: Partial<HostSettings> = {}, state: NodeState = freshNode()) {
    this.node = new NodeInMemory(state);
    this.settings = { ...exampleSettings(this.dataDir), ...changes };
  }

  get run(): HostRunner {
    return { ...createHostRunner(this.node.execute), pause: async () => undefined };
  }

  /** What the agent does at its start: a network where there is none, then the node around it. */
  async start(): Promise<void> {
    if (!this.node.state.switches.some((entry) => entry["Name"] === this.settings.hnsNetwork)) {
      await prepareHost(this.settings, this.run);
      makeHnsNetwork(this.node.state, this.settings.hnsNetwork, this.moves);
    }
    await setUpHost(this.settings, this.run);
  }

  cleanUp(): ReturnType<typeof cleanUpHost> {
    return cleanUpHost(this.dataDir, this.run, async (name) => {
      deleteHnsNetwork(this.node.state, name, this.moves);
      return [{ step: "hns network", what: name, did: "undone" }];
    });
  }

  /** All that the node is, in no order. */
  snapshot(): unknown {
    return Object.fromEntries(
      Object.entries(this.node.state).map(([table, rows]) => [
        table,
        rows.map((row: object) => JSON.stringify(row, Object.keys(row).sort())).sort(),
      ]),
    );
  }

  [Symbol.dispose](): void {
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}
