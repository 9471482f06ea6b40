import type { HostProgram } from "./host-programs.ts";

/** What a node of Linux shows of its network, with the programs that stand there. None of them changes anything. */
export const linuxPrograms: readonly HostProgram[] = [
  { file: "system", line: ["uname", "-srvm"] },
  { file: "links", line: ["ip", "-details", "-statistics", "link", "show"] },
  { file: "addresses", line: ["ip", "address", "show"] },
  { file: "rules", line: ["ip", "rule", "show"] },
  { file: "routes", line: ["ip", "route", "show", "table", "all"] },
  { file: "routes6", line: ["ip", "-6", "route", "show", "table", "all"] },
  { file: "neighbours", line: ["ip", "neigh", "show"] },
  { file: "namespaces", line: ["ip", "netns", "list"] },
  { file: "bridge-ports", line: ["bridge", "-details", "link", "show"] },
  { file: "bridge-addresses", line: ["bridge", "fdb", "show"] },
  { file: "nftables", line: ["nft", "list", "ruleset"] },
  { file: "iptables", line: ["iptables-save", "-c"] },
  {
    file: "sysctl",
    line: ["sysctl", "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.bridge", "net.netfilter"],
  },
  { file: "modules", line: ["lsmod"] },
  { file: "sockets", line: ["ss", "-Hltnup"] },
  { file: "unit", line: ["systemctl", "status", "--no-pager", "--lines=0", "pipette-agent"] },
];

/** With Open vSwitch, of the bridge whose management socket this is. */
export const switchPrograms = (database: string, management: string): readonly HostProgram[] => [
  { file: "ovs-database", line: ["ovs-vsctl", `--db=${database}`, "--timeout=10", "show"] },
  { file: "ovs-rows", line: ["ovsdb-client", "dump", "--timeout=10", database, "Open_vSwitch"] },
  { file: "ovs-flows", line: ["ovs-ofctl", "-OOpenFlow15", "--timeout=10", "dump-flows", `unix:${management}`] },
  { file: "ovs-groups", line: ["ovs-ofctl", "-OOpenFlow15", "--timeout=10", "dump-groups", `unix:${management}`] },
  { file: "ovs-ports", line: ["ovs-ofctl", "-OOpenFlow15", "--timeout=10", "dump-ports", `unix:${management}`] },
];
