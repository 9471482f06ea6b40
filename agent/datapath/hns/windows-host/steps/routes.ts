import {
  type Cidr,
  contains,
  firstOf,
  formatCidr,
  formatIp,
  ipOf,
  parseIp,
  sameIp,
} from "../../../../../shared/net/ip.ts";
import type { Thing } from "../record.ts";
import type { Statement } from "../script.ts";
import type { HostSettings, SettingsRoute } from "../settings.ts";
import { type HostRoute, type Neighbour, plainMac, sameName, type Tables } from "../tables.ts";
import { requireInterface } from "./interface.ts";
import { field, hostError, missing, type Step, type StepView, there } from "./step.ts";

/** Antrea's metric; Windows' own on-link routes have the same. */
const metric = 256;

/** Without its host bits, as Windows writes it. */
export const blockOf = (cidr: Cidr): Cidr => ({ ip: firstOf(cidr), prefix: cidr.prefix });

const routeOf = (destination: Cidr, nextHop: string, alias: string): Thing => ({
  destination: formatCidr(blockOf(destination)),
  nextHop,
  alias,
  family: destination.ip.family === 4 ? "IPv4" : "IPv6",
});

/** Routes are made in the active store only: after a reboot the interface is another one, and the agent makes them anew. */
const routeStep = (
  name: string,
  action: string,
  wanted: (view: StepView) => readonly Thing[],
  needed: Step["needed"] = () => true,
): Step => ({
  name,
  action,
  tables: ["interfaces", "addresses", "routes"],
  needed,
  wanted,
  judge: (thing, tables) => {
    const { index } = requireInterface(tables, action, field(thing, "alias"), field(thing, "family"));
    const all = tables.get("routes").filter((route) => formatCidr(route.destination) === thing["destination"]);
    if (all.some((route) => isRoute(route, thing) && route.index === index)) return there;
    const [other] = all;
    if (other === undefined) return missing();
    const is = `${thing["destination"]} goes through ${formatIp(other.nextHop)} on "${other.alias}"`;
    throw hostError(action, is, `no route to it but ours, through ${thing["nextHop"]} on "${thing["alias"]}"`);
  },
  make: (thing, tables) => {
    const { index } = requireInterface(tables, action, field(thing, "alias"), field(thing, "family"));
    const [DestinationPrefix, NextHop] = [field(thing, "destination"), field(thing, "nextHop")];
    const args = { InterfaceIndex: index, DestinationPrefix, NextHop, RouteMetric: metric, PolicyStore: "ActiveStore" };
    return [{ cmdlet: "New-NetRoute", args }];
  },
  undo: (thing, _before, tables) =>
    tables
      .get("routes")
      .filter((route) => isRoute(route, thing) && sameName(route.alias, field(thing, "alias")))
      .map(({ index }) => ({
        cmdlet: "Get-NetRoute",
        where: {
          DestinationPrefix: field(thing, "destination"),
          NextHop: field(thing, "nextHop"),
          InterfaceIndex: String(index),
        },
        into: { cmdlet: "Remove-NetRoute", args: { Confirm: false } },
      })),
  describe: (thing) => `route to ${thing["destination"]} through ${thing["nextHop"]} on "${thing["alias"]}"`,
});

const isRoute = (route: HostRoute, thing: Thing): boolean =>
  formatCidr(route.destination) === thing["destination"] && formatIp(route.nextHop) === thing["nextHop"];

/** The pods are neighbours on the gateway interface. */
export const podRoute: Step = routeStep("pod route", "add the route to the pod subnet", ({ settings, tables }) => {
  const { podSubnet, gatewayInterface: alias } = settings;
  requireGateway(settings, tables);
  return [routeOf(podSubnet, formatIp(ipOf(podSubnet.ip.family, 0n)), alias)];
});

export const peerRoutes: Step = routeStep("peer routes", "add the route to another node's pods", ({ settings }) =>
  unique(toPeer(settings)),
);

const toPeer = ({ peers, gatewayInterface }: HostSettings): readonly Thing[] =>
  peers.map((peer) => routeOf(peer.podSubnet, formatIp(peer.gateway), gatewayInterface));

/** Routes to nodes and services from the registry; `peers` takes precedence for the same pods. */
export const nodeRoutes: Step = {
  ...routeStep(
    "node routes",
    "add the route to another node's pods, or to services",
    ({ settings }) => {
      const told = new Set(toPeer(settings).map((thing) => thing["destination"]));
      const wanted = (settings.routes ?? []).flatMap((route) => [...directly(route), thingOf(route)]);
      return unique(wanted.filter((thing) => !told.has(thing["destination"])));
    },
    (settings) => settings.routes !== undefined,
  ),
  apart: true,
};

const thingOf = ({ destination, nextHop, alias }: SettingsRoute): Thing =>
  routeOf(destination, formatIp(nextHop), alias);

/** A declared next hop that is none of the destination's own addresses has to be reached first. */
function directly({ destination, nextHop, alias, nextHopMac }: SettingsRoute): readonly Thing[] {
  if (nextHopMac === undefined || contains(destination, nextHop)) return [];
  const host = { ip: nextHop, prefix: nextHop.family === 4 ? 32 : 128 };
  return [routeOf(host, formatIp(ipOf(nextHop.family, 0n)), alias)];
}

const unique = (things: readonly Thing[]): readonly Thing[] => [
  ...new Map(things.map((thing) => [JSON.stringify(thing), thing])).values(),
];

/** If another interface held the gateway's address, the pods' packets would go there. */
function requireGateway({ gateway, podSubnet, gatewayInterface }: StepView["settings"], tables: Tables): void {
  const { action } = podRoute;
  if (!contains(podSubnet, gateway))
    throw hostError(action, `the gateway is ${formatIp(gateway)}`, `an address of ${formatCidr(podSubnet)}`);
  const holder = tables.get("addresses").find((address) => sameIp(address.ip, gateway));
  const alias = tables.get("interfaces").find((entry) => entry.index === holder?.index)?.alias;
  if (alias !== undefined && !sameName(alias, gatewayInterface))
    throw hostError(action, `${formatIp(gateway)} is on "${alias}"`, `it on "${gatewayInterface}" or on none`);
}

/**
 * Neighbour entries of next hops that do not answer ARP: the switch takes every packet for their MAC. Learned entries
 * are replaced.
 */
export const neighbours: Step = {
  name: "neighbours",
  action: "declare the neighbour on the gateway",
  tables: ["interfaces", "neighbours"],
  needed: (settings) => settings.routes !== undefined,
  apart: true,
  wanted: ({ settings: { routes = [] } }) => [
    ...new Map(
      routes.flatMap(({ nextHop, alias, nextHopMac }) =>
        nextHopMac === undefined
          ? []
          : [[`${formatIp(nextHop)} ${alias}`, { address: formatIp(nextHop), alias, mac: plainMac(nextHopMac) }]],
      ),
    ).values(),
  ],
  judge: (thing, tables) => {
    const { index } = interfaceOf(thing, tables);
    return known(thing, tables, index).some((entry) => isOurs(entry, thing)) ? there : missing();
  },
  make: (thing, tables) => {
    const { index } = interfaceOf(thing, tables);
    const LinkLayerAddress = (field(thing, "mac").match(/../g) ?? []).join("-").toUpperCase();
    const args = { InterfaceIndex: index, IPAddress: field(thing, "address"), LinkLayerAddress, State: "Permanent" };
    return [
      ...(known(thing, tables, index).length > 0 ? [removal(index, thing)] : []),
      { cmdlet: "New-NetNeighbor", args: { ...args, PolicyStore: "ActiveStore" } },
    ];
  },
  undo: (thing, _before, tables) => {
    const index = tables.get("interfaces").find((entry) => sameName(entry.alias, field(thing, "alias")))?.index ?? -1;
    return known(thing, tables, index).some((entry) => isOurs(entry, thing)) ? [removal(index, thing)] : [];
  },
  describe: (thing) => `neighbour ${thing["address"]} at ${thing["mac"]} on "${thing["alias"]}"`,
};

const interfaceOf = (thing: Thing, tables: Tables) =>
  requireInterface(
    tables,
    neighbours.action,
    field(thing, "alias"),
    field(thing, "address").includes(":") ? "IPv6" : "IPv4",
  );

function known(thing: Thing, tables: Tables, index: number): readonly Neighbour[] {
  const ip = parseIp(field(thing, "address"));
  if (ip === undefined) throw hostError(neighbours.action, `"address" is "${thing["address"]}"`, "an address");
  return tables.get("neighbours").filter((entry) => entry.index === index && sameIp(entry.ip, ip));
}

const isOurs = (entry: Neighbour, thing: Thing): boolean => entry.permanent && entry.mac === thing["mac"];

const removal = (index: number, thing: Thing): Statement => ({
  cmdlet: "Get-NetNeighbor",
  where: { IPAddress: field(thing, "address"), InterfaceIndex: String(index) },
  into: { cmdlet: "Remove-NetNeighbor", args: { Confirm: false } },
});
