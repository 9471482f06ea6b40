import { join } from "node:path";
import { compileExecutable } from "../../../build/bundle.ts";
import type { KindAnswer } from "../../fakes/container-kinds.ts";
import { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { NetworkSandbox } from "../../support/network-sandbox.ts";
import { deleteInternalPort, makeInternalPort, startContainer } from "../../windows-host/node-state.ts";
import type { WinePrefix } from "../wine/prefix.ts";
import type { Program } from "../wine/program.ts";
import { SwitchRelay } from "./switch-relay.ts";
import { addressesOf, WindowsNode } from "./windows-node.ts";

export const bridge = "br-int";
export const gateway = "pipette-gw0";

/**
 * A real Open vSwitch for a Windows node: it runs on this system, in a network of the calling process's own, with a
 * card called as the node's. Make it before the Windows, which is to be in that network too.
 */
export class NodeSwitch implements AsyncDisposable {
  readonly vswitch: OpenVswitch;
  readonly #all: AsyncDisposableStack;
  readonly #database: SwitchRelay;
  readonly #management: SwitchRelay;

  private constructor(vswitch: OpenVswitch, database: SwitchRelay, management: SwitchRelay, all: AsyncDisposableStack) {
    this.vswitch = vswitch;
    this.#database = database;
    this.#management = management;
    this.#all = all;
  }

  static async start(): Promise<NodeSwitch> {
    await using all = new AsyncDisposableStack();
    const sandbox = all.use(await NetworkSandbox.enter("pt-win-"));
    await sandbox.node("ip link add Ethernet0 address 00:15:5d:01:02:03 type veth peer name wire");
    for (const name of ["Ethernet0", "wire"]) await sandbox.node(`ip link set ${name} up`);
    const vswitch = all.use(await OpenVswitch.start());
    const database = all.use(await SwitchRelay.open(vswitch.socket));
    const management = all.use(await SwitchRelay.open(vswitch.management(bridge)));
    return new NodeSwitch(vswitch, database, management, all.move());
  }

  /** The section `ovs` of agent.yaml. */
  section(changes: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
    const addresses = {
      database: `tcp:127.0.0.1:${this.#database.port}`,
      management: `tcp:127.0.0.1:${this.#management.port}`,
    };
    return { ...addresses, datapath: "netdev", ...changes };
  }

  /** Has two programs of this Windows serve the pipes that Open vSwitch has there. They end with the Windows. */
  async servePipes(prefix: WinePrefix): Promise<void> {
    const outfile = prefix.unixPath("C:\\test\\relay.exe");
    prefix.write("C:\\test\\relay.txt", "");
    const entry = join(import.meta.dirname, "../pipe/openflow-pipe-program.ts");
    await compileExecutable({ entry, base: "bun-windows-x64", outfile });
    const pipes = [
      ["db.sock", this.#database.port],
      [`${bridge}.mgmt`, this.#management.port],
    ] as const;
    for (const [file, port] of pipes) {
      const pipe = `\\\\.\\pipe\\C:openvswitchvarrunopenvswitch${file}`;
      await prefix.start(outfile, { args: ["relay", pipe, String(port)], timeoutMs: 300_000 }).saying("relays");
    }
  }

  /** Ports of the bridge; none where there is no bridge. */
  async ports(): Promise<readonly string[]> {
    const bridges = await this.vswitch.vsctl("list-br");
    return bridges.includes(bridge) ? (await this.vswitch.vsctl("list-ports", bridge)).split("\n") : [];
  }

  /** A column of an interface's row. */
  column(name: string, column: string): Promise<string> {
    return this.vswitch.vsctl("get", "Interface", name, column);
  }

  /** All flows, with names in place of ports' numbers. */
  async flows(): Promise<readonly string[]> {
    const args = ["-O", "OpenFlow15", "dump-flows", `unix:${this.vswitch.management(bridge)}`, "--no-stats", "--names"];
    return (await this.vswitch.run("ovs-ofctl", ...args)).split("\n").map((line) => line.trim());
  }

  /** Those that name an address. */
  async flowsOf(address: string): Promise<readonly string[]> {
    return (await this.flows()).filter((line) => line.split(/[ ,/]/).some((word) => word.endsWith(`=${address}`)));
  }

  /** Of a pod, as its port has it. */
  async podMac(port: string): Promise<string> {
    return (await this.vswitch.vsctl("get", "Port", port, "external_ids:attached-mac")).replaceAll('"', "");
  }

  /** Where the switch would send a packet. */
  trace(packet: string, ...more: readonly string[]): Promise<string> {
    const args = ["-t", this.vswitch.control, "ofproto/trace", "--names", bridge, packet, ...more];
    return this.vswitch.run("ovs-appctl", ...args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#all[Symbol.asyncDispose]();
  }
}

/** A Windows node whose pods' packets that switch forwards. */
export class OverlayWindowsNode implements AsyncDisposable {
  readonly windows: WindowsNode;
  /** `false` while the database cannot be asked: the gateway's adapter stays as it is. */
  followsSwitch = true;
  readonly #switch: NodeSwitch;

  private constructor(windows: WindowsNode, nodeSwitch: NodeSwitch) {
    this.windows = windows;
    this.#switch = nodeSwitch;
  }

  static async make(prefix: WinePrefix, nodeSwitch: NodeSwitch): Promise<OverlayWindowsNode> {
    const node = new OverlayWindowsNode(await WindowsNode.make(prefix), nodeSwitch);
    const { commands } = node.windows.stubs;
    const answer = commands.answerWith;
    commands.answerWith = async (command) => {
      await node.#followSwitch();
      return answer(command);
    };
    return node;
  }

  /** The adapter of Open vSwitch's gateway port comes and goes with the port. */
  async #followSwitch(): Promise<void> {
    if (!this.followsSwitch) return;
    const { state } = this.windows.host;
    const has = state.adapters.some((entry) => entry["Name"] === gateway);
    const wanted = (await this.#switch.ports()).includes(gateway);
    if (wanted && !has) makeInternalPort(state, gateway);
    if (!wanted && has) deleteInternalPort(state);
  }

  /** Starts the agent. @param changes of the section `ovs` @param more of the whole configuration */
  start(changes: Readonly<Record<string, unknown>> = {}, more: object = {}): Promise<Program> {
    return this.windows.start({}, { ovs: this.#switch.section(changes), ...more });
  }

  /** The address of the endpoint with this name. */
  addressOf(port: string): string {
    const endpoint = this.windows.endpoints().find((each) => each["Name"] === port);
    return endpoint === undefined ? "" : (addressesOf(endpoint)[0] ?? "");
  }

  /** The first container of the pod runs: Windows makes its adapter. */
  startContainer(port: string): void {
    startContainer(this.windows.host.state, port);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.windows[Symbol.asyncDispose]();
  }
}

/** The name of a pod's port, from the answer of its ADD. */
export function portOf(answer: KindAnswer): string {
  if (answer.t !== "ok") throw new Error(`the ADD was refused with ${answer.code}: ${answer.message}`);
  return JSON.parse(answer.text).interfaces[0].name;
}
