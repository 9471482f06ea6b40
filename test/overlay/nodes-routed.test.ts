import { describeModes } from "./lab/describe-modes.ts";

describeModes("pods of nodes that route for them", [
  { name: "on a kernel bridge", lab: { nodes: ["a", "a"], dataPath: "bridge" }, mtu: 1500, wire: [["plain"]] },
  { name: "without tunnels", lab: { nodes: ["a", "a"], ovs: { mode: "noEncap" } }, mtu: 1500, wire: [["plain"]] },
  {
    name: "with tunnels between links only",
    lab: { nodes: ["a", "a", "b"], ovs: { mode: "hybrid" } },
    mtu: 1450,
    wire: [["plain"], ["geneve"]],
  },
]);
