import { KernelIsolation } from "../../agent/datapath/ovs/linux/kernel-isolation.ts";
import { Kernel } from "../../agent/protocols/netlink/mod.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";

/** Does to a namespace without an agent what an agent does: its kernel leaves what comes in by these interfaces to the switch. */
export function leaveToSwitch(namespace: NetworkNamespace, names: readonly string[]): void {
  namespace.within(() => {
    using kernel = new Kernel();
    using filters = kernel.openPacketFilterSocket();
    using socket = kernel.openSocket();
    new KernelIsolation(filters, socket, "pipette-gw0").leaveToSwitch(names);
  });
}
