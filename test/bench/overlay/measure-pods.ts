import type { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { AgentHome } from "../../support/agent-process.ts";
import { overlayBudgets } from "../budgets.ts";
import { bridgeSide, timedVerb } from "../measures/pod.ts";
import { readFromEndToEnd } from "../page-cache.ts";
import { makeNamespaces, type Namespace, removeNamespaces, type Side } from "../pods.ts";
import { compare, type Row } from "../row.ts";
import { summarize } from "../stats.ts";
import type { OverlaySetting } from "./measure-overlay.ts";

const network = "bench";

/** Whole pods on Open vSwitch, as a runtime sees them, against `bridge` with host-local. */
export async function measureOverlayPods(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row[]> {
  const config = {
    dataPath: "ovs",
    networks: [{ name: network, subnets: ["10.66.0.0/16"], bridge: "bench-int", masquerade: false }],
    ovs: { database: `unix:${vswitch.socket}`, datapath: "netdev", nodeAddresses: ["192.0.2.1"] },
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
  return await measureVerbs(ours, peer, setting);
}

/** Both verbs together are held to the budget; each alone shows where the time goes. */
async function measureVerbs(ours: Side, peer: Side, setting: OverlaySetting): Promise<Row[]> {
  const pods = {
    ours: await makeNamespaces("ovs-ours", setting.rounds + 1),
    peer: await makeNamespaces("ovs-peer", setting.rounds + 1),
  };
  const times = { ours: { ADD: new Map<number, number>(), DEL: new Map() }, peer: { ADD: new Map(), DEL: new Map() } };
  const both =
    (who: "ours" | "peer", side: Side, namespaces: readonly Namespace[]) =>
    (round: number): number => {
      for (const verb of ["ADD", "DEL"] as const) times[who][verb].set(round, timedVerb(side, verb, namespaces[round]));
      return (times[who].ADD.get(round) ?? 0) + (times[who].DEL.get(round) ?? 0);
    };
  const peerName = "bridge + host-local";
  const whole = await compare({
    measure: "pod on Open vSwitch, ADD + DEL",
    ...overlayBudgets.pod,
    rounds: setting.rounds,
    ours: both("ours", ours, pods.ours),
    peer: both("peer", peer, pods.peer),
    peerName,
  });
  await removeNamespaces([...pods.ours, ...pods.peer]);
  const alone = (verb: "ADD" | "DEL"): Row => {
    const [own, others] = [times.ours, times.peer].map((side) => summarize(counted(side[verb])));
    if (own === undefined || others === undefined) throw new Error("Broken invariant: there are two sides");
    const value = own.median / others.median;
    return { measure: `  ${verb} alone`, unit: "ratio", ours: own, peer: others, peerName, value };
  };
  return [whole, alone("ADD"), alone("DEL")];
}

/** The first round warms up. */
const counted = (rounds: ReadonlyMap<number, number>): readonly number[] =>
  [...rounds].filter(([round]) => round > 0).map(([, ms]) => ms);
