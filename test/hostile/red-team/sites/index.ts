import type { LabOptions } from "../../../overlay/lab/lab.ts";
import { startBridgeSite } from "./bridge-site.ts";
import { startOvsSite } from "./ovs-site.ts";
import type { Site } from "./site.ts";

const uplink = "uplink";

/** Two nodes on a link, and where something happens between links one more beyond the router. */
const ovs: Readonly<Record<string, LabOptions>> = {
  encap: { nodes: ["a", "a"] },
  "encap-uplink": { nodes: ["a", "a"], nic: uplink },
  vxlan: { nodes: ["a", "a"], ovs: { tunnel: "vxlan" } },
  gre: { nodes: ["a", "a"], ovs: { tunnel: "gre" } },
  tenants: { nodes: ["a", "a"], ovs: { tenants: "multitenant" } },
  "tenants-uplink": { nodes: ["a", "a"], nic: uplink, ovs: { tenants: "multitenant" } },
  noEncap: { nodes: ["a", "a"], ovs: { mode: "noEncap" } },
  "noEncap-uplink": { nodes: ["a", "a"], nic: uplink, ovs: { mode: "noEncap" } },
  hybrid: { nodes: ["a", "a", "b"], ovs: { mode: "hybrid" } },
  "hybrid-uplink": { nodes: ["a", "a", "b"], nic: uplink, ovs: { mode: "hybrid" } },
  networkPolicyOnly: { nodes: ["a"], ovs: { mode: "networkPolicyOnly" } },
};

/** Where the red team attacks, by the names of modes. */
export const sites: Readonly<Record<string, () => Promise<Site>>> = {
  bridge: () => startBridgeSite("both"),
  "bridge-ipv4": () => startBridgeSite("ipv4"),
  ...Object.fromEntries(Object.entries(ovs).map(([name, options]) => [name, () => startOvsSite(options)])),
};

export const siteNames: readonly string[] = Object.keys(sites);
