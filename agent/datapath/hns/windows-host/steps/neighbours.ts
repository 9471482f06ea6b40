import { formatIp, parseIp, sameIp } from "../../../../../shared/net/ip.ts";
import type { Thing } from "../record.ts";
import type { Statement } from "../script.ts";
import { type Neighbour, plainMac, sameName, type Tables } from "../tables.ts";
import { requireInterface } from "./interface.ts";
import { field, hostError, missing, type Step, there } from "./step.ts";

/**
 * Next hops that nobody answers for: the switch takes every packet that is sent to their hardware address. What
 * Windows has learned of such an address meanwhile is replaced.
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
