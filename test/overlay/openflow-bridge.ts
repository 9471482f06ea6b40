import type { ClientOptions } from "../../agent/protocols/openflow/client.ts";
import { OpenFlowClient } from "../../agent/protocols/openflow/mod.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { OpenVswitch } from "./open-vswitch.ts";

const ofctlVersion = { 4: "OpenFlow13", 6: "OpenFlow15" } as const;

/** A bridge with two ports and the tools of Open vSwitch, for what has to be shown on the real one. */
export class OpenFlowBridge implements AsyncDisposable {
  readonly vswitch: OpenVswitch;
  /** The network that all of it is in. */
  readonly sandbox: NetworkSandbox;

  private constructor(sandbox: NetworkSandbox, vswitch: OpenVswitch) {
    this.sandbox = sandbox;
    this.vswitch = vswitch;
  }

  /** In a network of its own, secure: without flows, nothing passes. */
  static async start(): Promise<OpenFlowBridge> {
    const sandbox = await NetworkSandbox.enter("pt-of-");
    try {
      const bridge = new OpenFlowBridge(sandbox, await OpenVswitch.start());
      await bridge.addBridge("br-int", "OpenFlow10,OpenFlow13,OpenFlow15");
      for (const port of [1, 2]) await bridge.addPort(`p${port}`, port);
      return bridge;
    } catch (caught) {
      await sandbox[Symbol.asyncDispose]();
      throw caught;
    }
  }

  async addBridge(name: string, protocols: string): Promise<void> {
    const settings = ["datapath_type=netdev", "fail_mode=secure", `protocols=${protocols}`];
    await this.vswitch.vsctl(
      "add-br",
      name,
      "--",
      "set",
      "Bridge",
      name,
      ...settings,
      "other_config:disable-in-band=true",
    );
  }

  async addPort(name: string, number: number, bridge = "br-int"): Promise<void> {
    const settings = ["type=internal", `ofport_request=${number}`];
    await this.vswitch.vsctl("add-port", bridge, name, "--", "set", "Interface", name, ...settings);
  }

  connect(options: ClientOptions = {}, bridge = "br-int"): Promise<OpenFlowClient> {
    return OpenFlowClient.connect({ t: "path", path: this.vswitch.management(bridge) }, options);
  }

  /** Runs ovs-ofctl on the bridge; answers its lines without the blanks around them. */
  async ofctl(version: 4 | 6, ...[command = "", ...args]: readonly string[]): Promise<string[]> {
    const target = `unix:${this.vswitch.management("br-int")}`;
    const output = await this.vswitch.run("ovs-ofctl", "-O", ofctlVersion[version], command, target, ...args);
    return output.split("\n").map((line) => line.trim());
  }

  /** The flows as ovs-ofctl prints them, sorted. */
  async dumpFlows(version: 4 | 6 = 6): Promise<string[]> {
    const lines = await this.ofctl(version, "dump-flows", "--no-stats", "--no-names");
    return lines.filter((line) => line !== "").sort();
  }

  /** What ovs-ofctl reads in the bytes of a message. */
  print(message: Uint8Array): Promise<string> {
    return this.vswitch.run("ovs-ofctl", "ofp-print", Buffer.from(message).toString("hex"));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.vswitch[Symbol.asyncDispose]();
    await this.sandbox[Symbol.asyncDispose]();
  }
}
