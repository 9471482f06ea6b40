import type { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { AgentHome, networkName } from "../../support/agent-process.ts";
import { overlayBudgets } from "../budgets.ts";
import { makeNamespaces, removeNamespaces } from "../pods.ts";
import { compare, type Row } from "../row.ts";
import { summarize } from "../stats.ts";
import type { OverlaySetting } from "./measure-overlay.ts";

/**
 * Pods that all come at once, as after a drain or a reboot: how long an agent takes for one ADD of them, on Open vSwitch
 * and on a kernel bridge. Called as the plugin calls, without the plugin: fifty of its starts would be most of it.
 */
export async function measureBurst(vswitch: OpenVswitch, setting: OverlaySetting): Promise<Row> {
  const { burst: pods, dist, rounds, progress } = setting;
  progress(`${pods} pods at once on Open vSwitch`);
  const network = { name: networkName, masquerade: false };
  await using ovs = new AgentHome(
    {
      dataPath: "ovs",
      networks: [{ ...network, subnets: ["10.68.0.0/16"], bridge: "bench-int" }],
      ovs: { database: `unix:${vswitch.socket}`, datapath: "netdev", nodeAddresses: ["192.0.2.1"] },
      janitorIntervalMs: 60_000,
    },
    dist,
  );
  const networks = [{ ...network, subnets: ["10.69.0.0/16"], bridge: "bench-burst" }];
  await using bridge = new AgentHome({ networks, janitorIntervalMs: 60_000 }, dist);
  await Promise.all([ovs.start(), bridge.start()]);
  return await compare({
    measure: `an ADD among ${pods} at once, in the agent`,
    ...overlayBudgets.burst,
    rounds: Math.max(1, Math.floor(rounds / 4)),
    ours: (round) => medianAdd(ovs, `burst-ovs-${round}`, pods),
    peer: (round) => medianAdd(bridge, `burst-bridge-${round}`, pods),
    peerName: "Pipette on a kernel bridge",
  });
}

/** Milliseconds. @throws where a call fails */
async function medianAdd(home: AgentHome, prefix: string, pods: number): Promise<number> {
  const namespaces = await makeNamespaces(prefix, pods);
  const times = await Promise.all(
    namespaces.map(async ({ id, path }) => {
      const began = performance.now();
      const { error } = await home.cmd("cmdAdd", id, { netns: path });
      if (error !== undefined) throw new Error(`Cannot measure the burst: ${JSON.stringify(error)}`);
      return performance.now() - began;
    }),
  );
  await Promise.all(namespaces.map(({ id, path }) => home.cmd("cmdDel", id, { netns: path })));
  await removeNamespaces(namespaces);
  return summarize(times).median;
}
