import { nodeMac, nodeOn, routerOn } from "../../overlay/lab/addresses.ts";
import { withLength } from "../../overlay/lab/underlay.ts";
import { OpenVswitch } from "../../overlay/open-vswitch.ts";
import type { NetworkNamespace } from "../../support/network-namespace.ts";
import type { PrivateNode } from "../../support/private-node.ts";

const outerBridge = "br-phy";
/** Where agents look for it. */
const switchDirectory = "/run/openvswitch";

/** Interfaces that a node with a switch has, and that are nobody's pod. */
export const switchLinks = [outerBridge, "ovs-netdev", "br-int", "pipette-gw0", "pipette-tun0"] as const;

/** Gives a node an Open vSwitch in user space, with a bridge for its interface, which has the node's addresses then. */
export async function startNodeSwitch(
  place: PrivateNode,
  namespace: NetworkNamespace,
  number: number,
  nic: string,
): Promise<OpenVswitch> {
  const vswitch = await OpenVswitch.start("both", { parent: place.directory, within: namespace.within });
  await place.run(`mkdir ${switchDirectory}`);
  await place.run(`mount --bind ${vswitch.directory} ${switchDirectory}`);
  await vswitch.vsctl(
    ...["add-br", outerBridge, "--", "set", "Bridge", outerBridge, "datapath_type=netdev", "fail_mode=standalone"],
    `other_config:hwaddr="${nodeMac(number)}"`,
    ...["--", "add-port", outerBridge, nic],
  );
  await namespace.ip(
    `link set ${outerBridge} up`,
    `addr flush dev ${nic}`,
    ...withLength(nodeOn("a", number)).map((address) => `addr add ${address} dev ${outerBridge} nodad`),
    ...routerOn("a").map((router) => `route replace default via ${router}`),
  );
  return vswitch;
}
