import type { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { AgentHome } from "../../support/agent-process.ts";
import { overlayBudgets } from "../budgets.ts";
import { bridgeSide, timedVerb } from "../measures/pod.ts";
import { readFromEndToEnd } from "../page-cache.ts";
import { makeNamespaces, type Namespace, removeNamespaces, type Side } from "../pods.ts";
import { compare, type Row } from "../row.ts";
import type { OverlaySetting } from "./measure-overlay.ts";

const network = "bench";

/** Whole pods on Open vSwitch, as a runtime sees them, against `bridge` with host-local. */
export async function measureOverlayPods(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row[]> {
  const config = {
    dataPath: "ovs",
    networks: [{ name: network, subnets: ["10.66.0.0/16"], bridge: "bench-int", masquerade: false }],
    ovs: { database: `unix:${vswitch.socket}`, datapath: "netdev", nodeAddresses: ["127.0.0.1"] },
  };
  await using home = new AgentHome(config, setting.dist);
  await home.start();
  const list = JSON.parse(await Bun.file(home.conflist).text());
  const ours: Side = {
    executable: `${setting.dist}/pipette`,
    conf: { ...list.plugins[0], name: network, cniVersion: "1.0.0" },
    path: setting.peers,
  };
  const peer = bridgeSide(setting, network);
  setting.progress("a pod on Open vSwitch, ADD and DEL");
  await readFromEndToEnd([ours.executable, peer.executable, `${setting.peers}/host-local`]);
  return [await measureVerb("ADD", ours, peer, setting), await measureVerb("DEL", ours, peer, setting)];
}

/** One verb alone; the other one makes what it needs, or takes it away again, outside what is timed. */
async function measureVerb(verb: "ADD" | "DEL", ours: Side, peer: Side, setting: OverlaySetting): Promise<Row> {
  const pods = {
    ours: await makeNamespaces(`ovs-${verb}-ours`, setting.rounds + 1),
    peer: await makeNamespaces(`ovs-${verb}-peer`, setting.rounds + 1),
  };
  const one =
    (side: Side, namespaces: readonly Namespace[]) =>
    (round: number): number => {
      const added = timedVerb(side, "ADD", namespaces[round]);
      const gone = timedVerb(side, "DEL", namespaces[round]);
      return verb === "ADD" ? added : gone;
    };
  const row = await compare({
    measure: `pod on Open vSwitch, ${verb}`,
    ...overlayBudgets.pod,
    rounds: setting.rounds,
    ours: one(ours, pods.ours),
    peer: one(peer, pods.peer),
    peerName: "bridge + host-local",
  });
  await removeNamespaces([...pods.ours, ...pods.peer]);
  return row;
}
