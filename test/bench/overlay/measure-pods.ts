import type { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { AgentHome } from "../../support/agent-process.ts";
import { overlayBudgets } from "../budgets.ts";
import { compileFront } from "../front.ts";
import { bridgeSide } from "../measures/pod.ts";
import { measureVerbs } from "../measures/verbs.ts";
import { asInstalled, type Side } from "../pods.ts";
import type { Row } from "../row.ts";
import type { Setting } from "../setting.ts";

const network = "bench";

type PodSetting = Pick<Setting, "dist" | "peers" | "scratch" | "rounds" | "launcher" | "progress">;

/** Whole pods on Open vSwitch, as a runtime sees them, against `bridge` with host-local. */
export async function measureOverlayPods(vswitch: OpenVswitch, setting: PodSetting): Promise<Row[]> {
  const config = {
    ...asInstalled,
    dataPath: "ovs",
    networks: [{ name: network, subnets: ["10.66.0.0/16"], bridge: "bench-int", masquerade: false }],
    ovs: { database: `unix:${vswitch.socket}`, datapath: "netdev", nodeAddresses: ["192.0.2.1"] },
  };
  await using home = new AgentHome(config, setting.dist);
  await home.start();
  const list = JSON.parse(await Bun.file(home.conflist).text());
  const wholeProgram = `${setting.dist}/pipette`;
  const places = { agentSocket: home.socket, wholeProgram };
  const front = await compileFront(`${setting.scratch}/front-ovs`, setting.dist, places);
  const ours: Side = {
    executable: front.pipette,
    conf: { ...list.plugins[0], name: network, cniVersion: "1.0.0" },
    path: setting.peers,
  };
  const peer = bridgeSide(setting, network);
  setting.progress("a pod on Open vSwitch, ADD and DEL");
  return await measureVerbs(setting, {
    measure: "pod on Open vSwitch, ADD + DEL",
    ours,
    peer,
    both: overlayBudgets.pod,
    add: overlayBudgets.podAdd,
    started: [`${setting.peers}/host-local`],
  });
}
