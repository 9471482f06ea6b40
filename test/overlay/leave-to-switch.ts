import { KernelBeside } from "../../agent/datapath/ovs/linux/kernel-beside.ts";
import { Kernel } from "../../agent/protocols/netlink/mod.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";

/** Does to a namespace without an agent what an agent does: its kernel leaves what comes in by these interfaces to the switch. */
export function leaveToSwitch(namespace: NetworkNamespace, names: readonly string[]): void {
  namespace.within(() => {
    using kernel = new Kernel();
    using filters = kernel.openPacketFilterSocket();
    using socket = kernel.openSocket();
    new KernelBeside(filters, socket, "pipette-gw0").leaveToSwitch(names);
  });
}
