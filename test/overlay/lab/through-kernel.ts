import { eventually } from "../../support/eventually.ts";
import type { NetworkNamespace } from "../../support/network-namespace.ts";
import type { OpenVswitch } from "../open-vswitch.ts";
import { type Link, nodeOn } from "./addresses.ts";
import { withoutChecksumOffload } from "./checksum-offload.ts";

interface ThroughKernel {
  readonly bridge: string;
  /** The node's own interface. */
  readonly uplink: string;
  /** The tunnel's packets, as `ip rule` takes them. */
  readonly packets: string;
  readonly link: Link;
  readonly number: number;
}

/** Nodes that any node may have tunnels to: those on its own link. */
const mostNodes = 8;
const [toKernel, ofKernel] = ["ov0", "kv0"] as const;

/**
 * Lets a switch in user space send its tunnels' packets through the node's kernel, which alone can have them encrypted:
 * else it sends by packet sockets, past the kernel. The bridge has the node's address and one end of a veth, the kernel
 * has the other end. What comes out of strongSwan's device goes the same way back, and so does what comes in clear.
 */
export async function leadThroughKernel(
  namespace: NetworkNamespace,
  vswitch: OpenVswitch,
  { bridge, uplink, packets, link, number }: ThroughKernel,
): Promise<void> {
  const [own] = nodeOn(link, number);
  await namespace.ip(
    `link add ${ofKernel} type veth peer name ${toKernel}`,
    `link set ${ofKernel} up`,
    `link set ${toKernel} up`,
  );
  withoutChecksumOffload(namespace, ofKernel);
  withoutChecksumOffload(namespace, toKernel);
  await vswitch.vsctl(
    ...["add-br", bridge, "--", "set", "Bridge", bridge, "datapath_type=netdev", "fail_mode=standalone"],
    ...["--", "add-port", bridge, toKernel],
  );
  namespace.sysctl({
    "ipv4/ip_forward": 1,
    "ipv4/conf/all/rp_filter": 0,
    [`ipv4/conf/${ofKernel}/rp_filter`]: 0,
    [`ipv4/conf/${ofKernel}/accept_local`]: 1,
  });
  const macs = await linkMacs(namespace);
  await namespace.ip(
    `link set ${bridge} up`,
    `addr add ${own}/24 dev ${bridge} noprefixroute`,
    `route add ${own}/32 dev ${ofKernel} table 300`,
    `neigh add ${own} lladdr ${macs.get(bridge)} dev ${ofKernel} nud permanent`,
    "rule add pref 10 iif ipsec0 lookup 300",
    `rule add pref 11 iif ${uplink} ${packets} lookup 300`,
    "rule add pref 100 lookup local",
    "rule del pref 0",
    // Whatever it is for the other node, strongSwan's route (table 220) would lead all of it into its device.
    `rule add pref 215 not ${packets} lookup main`,
  );
  const others = Array.from({ length: mostNodes }, (_, i) => i + 1).filter((other) => other !== number);
  for (const [peer] of others.map((other) => nodeOn(link, other))) {
    // The switch may not have heard of the bridge's address yet, and takes no route then.
    const add = (): Promise<boolean> =>
      vswitch.switchControl("ovs/route/add", `${peer}/32`, bridge).then(
        () => true,
        () => false,
      );
    await eventually(add, `a route to ${peer} in the switch`);
    await vswitch.switchControl("tnl/neigh/set", bridge, peer, macs.get(ofKernel) ?? "");
  }
}

async function linkMacs(namespace: NetworkNamespace): Promise<ReadonlyMap<string, string>> {
  const links: readonly { readonly ifname: string; readonly address: string }[] = JSON.parse(
    await namespace.run("ip -j link"),
  );
  return new Map(links.map(({ ifname, address }) => [ifname, address]));
}
