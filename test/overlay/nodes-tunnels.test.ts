import { describeModes } from "./lab/describe-modes.ts";

describeModes("pods of two nodes, in other tunnels", [
  { name: "vxlan", lab: { nodes: ["a", "a"], ovs: { tunnel: "vxlan" } }, mtu: 1450, wire: [["vxlan"]] },
  { name: "gre", lab: { nodes: ["a", "a"], ovs: { tunnel: "gre" } }, mtu: 1458, wire: [["gre"]] },
]);
