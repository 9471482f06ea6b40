import type { NetworkNamespace } from "../../support/network-namespace.ts";

/** The port of the pods' bridge that is the node's own. */
const gateway = "pipette-gw0";

/**
 * Open vSwitch in user space copies the frames of an interface, where the one in the kernel takes them: so the node's
 * kernel would see them too, answer for addresses, route past every flow, and make what is broken look sound. From
 * now on it hears its loopback, the gateway and the `others`, and nothing else. The switch still gets every frame.
 */
export async function guardKernel(namespace: NetworkNamespace, others: readonly string[]): Promise<void> {
  const heard = ["lo", gateway, ...others].map((name) => `"${name}"`).join(", ");
  const rule = `iifname != { ${heard} } drop;`;
  const rules = `
    table inet lab { }
    delete table inet lab
    table inet lab { chain heard { type filter hook prerouting priority raw; ${rule} }; }
    table arp lab { }
    delete table arp lab
    table arp lab { chain heard { type filter hook input priority 0; ${rule} }; }
  `;
  await namespace.run("nft -f -", rules);
}
