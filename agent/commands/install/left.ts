import { existsSync } from "node:fs";
import { isWindows } from "../../../shared/os/platform.ts";
import { macAnnotation } from "../../cluster/kubernetes/node-resource.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { runProgram } from "../../platform/run-program.ts";
import type { Left } from "./plan.ts";

const nftMs = 5_000;

/** What a removal will leave on the node. Changes nothing. */
export async function leftBehind(
  config: AgentConfig | undefined,
  files: { readonly configFile: string; readonly dataDir: string; readonly purge: boolean; readonly network: boolean },
): Promise<readonly Left[]> {
  return [
    ...(config === undefined || isWindows || files.network ? [] : await leftOnHost(config, files.configFile)),
    ...leftOnDisk(files),
    ...inRegistry(config),
  ];
}

async function leftOnHost(config: AgentConfig, configFile: string): Promise<readonly Left[]> {
  const { dataPath, networks, ovs } = config;
  const bridges = dataPath === "ovs" && ovs !== undefined ? [ovs.gateway] : networks.map(({ bridge }) => bridge);
  const { links, pods, routed } = await standingOnHost(bridges, new Set(networks.map(({ name }) => name)));
  // Loaded here: on Windows there is nothing to load.
  const { packetTable } = await import("../../datapath/linux/packet-rules.ts");
  const { routeProtocol } = await import("../../datapath/linux/node-routes.ts");
  const tables = bridges.flatMap((bridge) =>
    // Of the second family are the rules about ports, which a kernel bridge alone has.
    (["inet", "bridge"] as const).map((family) => ({ family, name: packetTable({ bridge }) })),
  );
  const there = await Promise.all(tables.map(async (table) => ((await tableIsThere(table)) ? [table] : [])));
  const rules = there.flat().map(({ family, name }) => ({
    what: `nftables table "${family} ${name}"`,
    command: `nft delete table ${family} ${name}`,
  }));
  // Ports, addresses and flows are cleaned up together, and an uplink's addresses have to be moved back.
  if (dataPath === "ovs" && links.length + rules.length > 0)
    return [
      {
        what: `bridge "${networks[0]?.bridge}" of Open vSwitch, its gateway "${links.join()}", packet rules`,
        command: `pipette agent --cleanup --config ${configFile} (before this removal, or with another copy of the executable)`,
      },
    ];
  const routes = {
    what: "routes to other nodes' pods",
    command: `ip route flush proto ${routeProtocol} (and with ip -6)`,
  };
  return [
    // Interfaces of unfinished DELs, and of pods that still ran.
    ...pods.map((name) => ({ what: `interface "${name}" of a pod`, command: `ip link del ${name}` })),
    ...links.map((name) => ({ what: `bridge "${name}"`, command: `ip link del ${name}` })),
    ...(routed ? [routes] : []),
    ...rules,
  ];
}

interface OnHost {
  readonly links: readonly string[];
  /** Host's ends of pods' interfaces. */
  readonly pods: readonly string[];
  readonly routed: boolean;
}

async function standingOnHost(names: readonly string[], networks: ReadonlySet<string>): Promise<OnHost> {
  const { hasNodeRoutes } = await import("../../datapath/linux/node-routes.ts");
  const { Kernel } = await import("../../protocols/netlink/mod.ts");
  const { listAllLinks, findLink } = await import("../../datapath/linux/host-links.ts");
  const { parseAlias } = await import("../../datapath/linux/names.ts");
  using kernel = new Kernel();
  using socket = kernel.openSocket();
  const links = names.filter((name) => findLink(socket, { name }) !== undefined);
  const isOurs = ({ alias }: { readonly alias: string }): boolean =>
    networks.has(parseAlias(alias)?.owner.network ?? "");
  const pods = listAllLinks(socket)
    .filter(isOurs)
    .map(({ name }) => name);
  return { links, pods, routed: hasNodeRoutes(socket) };
}

async function tableIsThere({ family, name }: { readonly family: string; readonly name: string }): Promise<boolean> {
  const { failure } = await runProgram("nft", ["list", "table", family, name], { deadlineMs: nftMs });
  return failure === "";
}

function leftOnDisk({ configFile, dataDir, purge }: Parameters<typeof leftBehind>[1]): readonly Left[] {
  if (purge) return [];
  const remove = isWindows ? "Remove-Item -Recurse" : "rm -r";
  return [
    { what: "configuration", path: configFile },
    { what: "leases and log", path: dataDir },
  ]
    .filter(({ path }) => existsSync(path))
    .map(({ what, path }) => ({ what: `${what} "${path}"`, command: `${remove} ${path}` }));
}

/** The node's record in a registry has to be removed by hand. */
function inRegistry(config: AgentConfig | undefined): readonly Left[] {
  const nodes = config?.nodes;
  if (nodes?.registry.type === "kubernetes")
    return [
      {
        what: `annotation "${macAnnotation}" of the Node "${nodes.name}"`,
        command: `kubectl annotate node ${nodes.name} ${macAnnotation}-`,
      },
    ];
  if (nodes === undefined || nodes.registry.type !== "etcd") return [];
  const command = `pipette nodes release ${nodes.name} (on another node)`;
  return [{ what: `record and subnet of "${nodes.name}" in the registry`, command }];
}
