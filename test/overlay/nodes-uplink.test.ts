import { describeModes } from "./lab/describe-modes.ts";

const nic = "uplink";

describeModes("pods of nodes whose own interface is on the pods' bridge", [
  { name: "in tunnels", lab: { nodes: ["a", "a"], nic }, mtu: 1450, wire: [["geneve"]] },
  { name: "without tunnels", lab: { nodes: ["a", "a"], nic, ovs: { mode: "noEncap" } }, mtu: 1500, wire: [["plain"]] },
  {
    name: "with tunnels between links only",
    lab: { nodes: ["a", "a", "b"], nic, ovs: { mode: "hybrid" } },
    mtu: 1450,
    wire: [["plain"], ["geneve"]],
  },
]);
