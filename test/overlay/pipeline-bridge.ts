import { type TableName, tables } from "../../agent/datapath/ovs/pipeline/tables.ts";
import { addFlow, deleteFlows, type Flow, type OpenFlowClient } from "../../agent/protocols/openflow/mod.ts";
import { OpenFlowBridge } from "./openflow-bridge.ts";

/** What a traced packet met. */
export interface Traced {
  /** The tables that it passed, in order, between blanks; one that it passed twice stands twice. */
  readonly way: string;
  /** Names of the ports that it is sent to at the end; none: it is dropped. */
  readonly to: readonly string[];
  /** The packet as it leaves, in ovs-ofctl's notation. */
  readonly final: string;
  /** What the data path does with it, the tunnel's header among it. */
  readonly actions: string;
  readonly text: string;
}

const names = new Map<number, TableName>(Object.entries(tables).map(([name, number]) => [number, name as TableName]));

/** The ports of the bridge that flows are tried on, by their numbers. */
export const ports = { tun0: 1, gw0: 2, ul0: 3, pod1: 11, pod2: 12, pod3: 13 } as const;

/** A real switch with the ports of a node, on which packets are traced through flows. No packet is sent. */
export class PipelineBridge implements AsyncDisposable {
  readonly bridge: OpenFlowBridge;
  readonly #client: OpenFlowClient;

  private constructor(bridge: OpenFlowBridge, client: OpenFlowClient) {
    this.bridge = bridge;
    this.#client = client;
  }

  static async start(): Promise<PipelineBridge> {
    const bridge = await OpenFlowBridge.start();
    try {
      const { tun0, ...internal } = ports;
      const tunnel = ["type=geneve", "options:remote_ip=flow", "options:key=flow", `ofport_request=${tun0}`];
      await bridge.vswitch.vsctl("del-port", "p1", "--", "del-port", "p2");
      await bridge.vswitch.vsctl("add-port", "br-int", "tun0", "--", "set", "Interface", "tun0", ...tunnel);
      await Promise.all(Object.entries(internal).map(([name, number]) => bridge.addPort(name, number)));
      await addUnderlay(bridge);
      return new PipelineBridge(bridge, await bridge.connect());
    } catch (caught) {
      await bridge[Symbol.asyncDispose]();
      throw caught;
    }
  }

  /** Puts these flows in place of all others; each has a place of its own, or the later would hide the earlier. */
  async install(flows: readonly Flow[]): Promise<void> {
    await this.#client.bundle([deleteFlows(), ...flows.map(addFlow)]);
    const installed = await this.#client.flows();
    if (installed.length !== flows.length) {
      throw new Error(`Of ${flows.length} flows there are ${installed.length}: some have one place`);
    }
  }

  /**
   * The way of a packet, in ovs-ofctl's notation. @param states of the connection, one for each time that it is looked up
   */
  async trace(packet: string, ...states: readonly string[]): Promise<Traced> {
    const tracked = states.flatMap((state) => ["--ct-next", state]);
    const { vswitch } = this.bridge;
    const text = await vswitch.run(
      "ovs-appctl",
      "-t",
      vswitch.control,
      "ofproto/trace",
      "--names",
      "br-int",
      packet,
      ...tracked,
    );
    return readTrace(text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client[Symbol.dispose]();
    await this.bridge[Symbol.asyncDispose]();
  }
}

/** A way to the other nodes: without one the switch does not say what it would send through the tunnel. */
async function addUnderlay(bridge: OpenFlowBridge): Promise<void> {
  const { vswitch } = bridge;
  await bridge.addBridge("br-phy", "OpenFlow15");
  await bridge.addPort("phy0", 1, "br-phy");
  await vswitch.run(
    "ovs-ofctl",
    "-O",
    "OpenFlow15",
    "add-flow",
    `unix:${vswitch.management("br-phy")}`,
    "actions=output:1",
  );
  for (const command of [
    "addr add 172.30.0.1/24 dev br-phy",
    "link set br-phy up",
    "route add 172.31.0.0/16 via 172.30.0.254",
  ]) {
    await vswitch.run("ip", ...command.split(" "));
  }
  for (const neighbour of ["172.30.0.2", "172.30.0.254"]) {
    await vswitch.run("ovs-appctl", "-t", vswitch.control, "tnl/neigh/set", "br-phy", neighbour, "02:00:00:00:00:09");
  }
}

/** By the actions of the last part: the data path's own are not told where a tunnel's other end has no route. */
function readTrace(text: string): Traced {
  // What the outer packet meets in the other bridge is not this one's way.
  const own = text.replaceAll(/^bridge\("br-phy"\)$.*?^Final flow/gms, "Final flow");
  const passed = [...own.matchAll(/^ *(\d+)\. /gm)].map(([, number]) => names.get(Number(number)));
  const last = own.slice(own.lastIndexOf('bridge("br-int")'));
  const sent = [...last.matchAll(/^ *(?:-> output port is (\S+)|output:([^[\s]+)|(LOCAL|IN_PORT))$/gm)];
  return {
    way: passed.filter((name) => name !== undefined).join(" "),
    // The switch sends nothing back where it came from.
    to: /skipping output to input port/.test(last)
      ? []
      : sent.map(([, found, number, reserved]) => reserved ?? portName(found ?? number ?? "")),
    final: (/^Final flow: (?!unchanged)(.*)$/m.exec(last) ?? [...text.matchAll(/^Flow: (.*)$/gm)].at(-1))?.[1] ?? "",
    actions: /^Datapath actions: (.*)$/m.exec(last)?.[1] ?? "",
    text,
  };
}

/** Of a name or a number. */
const portName = (port: string): string =>
  Object.entries(ports).find(([, number]) => String(number) === port)?.[0] ?? port;
