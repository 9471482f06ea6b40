import { type Cidr, formatCidr, formatIp, parseCidr, parseIp, sameIp } from "../../../../../shared/net/ip.ts";
import type { SavedAdapter, Thing } from "../record.ts";
import type { Statement } from "../script.ts";
import type { Adapter, Tables } from "../tables.ts";
import { field, hostError, missing, type Step, there, type Verdict } from "./step.ts";

const action = "restore the node's address";
const separator = ",";

/** What the card had, as things: its address with the gateway, its DNS servers, its routes. */
export function savedThings(saved: SavedAdapter): readonly Thing[] {
  const { mac, address, gateway, dnsServers, routes } = saved;
  return [
    { kind: "address", mac, address, gateway },
    ...(dnsServers.length === 0 ? [] : [{ kind: "dns", mac, servers: dnsServers.join(separator) }]),
    ...routes.map((route) => ({ kind: "route", mac, ...route, metric: String(route.metric) })),
  ];
}

export function addressOf(saved: SavedAdapter): Cidr {
  const address = parseCidr(saved.address);
  if (address === undefined)
    throw hostError(action, `the address on record is "${saved.address}"`, "one with its prefix");
  return address;
}

export const holds = (tables: Tables, index: number | undefined, { ip }: Cidr): boolean =>
  tables.get("addresses").some((entry) => entry.index === index && sameIp(entry.ip, ip));

/** How `thing` stands on the interface with this number. */
export function judgeOn(index: number, thing: Thing, tables: Tables): Verdict {
  const isThere = {
    address: () => holds(tables, index, parsedAddress(thing)),
    dns: () => tables.get("dnsServers").some((entry) => entry.index === index && sameServers(entry.servers, thing)),
    route: () =>
      tables
        .get("routes")
        .some(
          (route) =>
            route.index === index &&
            formatCidr(route.destination) === thing["destination"] &&
            formatIp(route.nextHop) === thing["nextHop"],
        ),
  }[kindOf(thing)];
  return isThere() ? there : missing();
}

/** Stored persistently, unlike routes to pods, because the address is the machine's own. */
export function makeOn(index: number, thing: Thing): readonly Statement[] {
  const InterfaceIndex = index;
  switch (kindOf(thing)) {
    case "address": {
      const { ip, prefix } = parsedAddress(thing);
      const gateway = field(thing, "gateway");
      const through = gateway === "" ? {} : { DefaultGateway: gateway };
      const args = { InterfaceIndex, IPAddress: formatIp(ip), PrefixLength: prefix, ...through };
      return [{ cmdlet: "New-NetIPAddress", args }];
    }
    case "dns": {
      const args = { InterfaceIndex, ServerAddresses: field(thing, "servers").split(separator) };
      return [{ cmdlet: "Set-DnsClientServerAddress", args }];
    }
    case "route": {
      const [DestinationPrefix, NextHop] = [field(thing, "destination"), field(thing, "nextHop")];
      const args = { InterfaceIndex, DestinationPrefix, NextHop, RouteMetric: Number(field(thing, "metric")) };
      return [{ cmdlet: "New-NetRoute", args }];
    }
  }
}

/** The switch's adapter, or the card under it: both have the card's hardware address. */
export const adapterWith = (tables: Tables, mac: string, virtual: boolean): Adapter | undefined =>
  tables.get("adapters").find((entry) => entry.virtual === virtual && entry.mac === mac);

/**
 * Windows moves the card's address, gateway, DNS servers and routes to the switch's adapter, and sometimes it does not.
 * If it has, nothing is changed; if not, all of it is set again. Never undone: the switch's adapter goes with the HNS
 * network, and `handBack` restores the physical one.
 */
export const address: Step = {
  name: "address",
  action,
  tables: ["adapters", "addresses", "dnsServers", "routes"],
  needed: (_settings, adapter) => adapter !== undefined,
  wanted: ({ adapter: saved, tables, begun }) => {
    if (saved === undefined) return [];
    const virtual = adapterWith(tables, saved.mac, true);
    // Before a step has begun, an address on the switch's adapter says that Windows has moved everything.
    return !begun && holds(tables, virtual?.index, addressOf(saved)) ? [] : savedThings(saved);
  },
  judge: (thing, tables) => {
    const { index } = requireVirtual(thing, tables);
    const elsewhere = thing["kind"] === "address" ? holderElsewhere(thing, tables, index) : undefined;
    if (elsewhere !== undefined)
      throw hostError(action, `${thing["address"]} is on "${elsewhere}"`, "it on the switch's adapter or on none");
    return judgeOn(index, thing, tables);
  },
  make: (thing, tables) => makeOn(requireVirtual(thing, tables).index, thing),
  undo: () => [],
  describe: describeSaved,
};

export function describeSaved(thing: Thing): string {
  const texts = {
    address: () => `${thing["address"]}${thing["gateway"] === "" ? "" : `, gateway ${thing["gateway"]}`}`,
    dns: () => `DNS servers ${thing["servers"]}`,
    route: () => `route to ${thing["destination"]} through ${thing["nextHop"]}`,
  };
  return `${texts[kindOf(thing)]()} on the adapter with ${thing["mac"]}`;
}

function requireVirtual(thing: Thing, tables: Tables): Adapter {
  const found = adapterWith(tables, field(thing, "mac"), true);
  if (found === undefined) throw hostError(action, `no virtual adapter has ${thing["mac"]}`, "the switch's adapter");
  return found;
}

function holderElsewhere(thing: Thing, tables: Tables, index: number): string | undefined {
  const { ip } = parsedAddress(thing);
  const holder = tables.get("addresses").find((entry) => entry.index !== index && sameIp(entry.ip, ip));
  if (holder === undefined) return undefined;
  return tables.get("adapters").find((entry) => entry.index === holder.index)?.name ?? `interface ${holder.index}`;
}

function parsedAddress(thing: Thing): Cidr {
  const parsed = parseCidr(field(thing, "address"));
  if (parsed === undefined)
    throw hostError(action, `"address" on record is "${thing["address"]}"`, "one with its prefix");
  return parsed;
}

function kindOf(thing: Thing): "address" | "dns" | "route" {
  const kind = field(thing, "kind");
  if (kind === "address" || kind === "dns" || kind === "route") return kind;
  throw hostError(action, `"kind" on record is "${kind}"`, "address, dns or route");
}

function sameServers(servers: readonly string[], thing: Thing): boolean {
  const plain = (texts: readonly string[]): string =>
    texts
      .map((text) => {
        const ip = parseIp(text);
        return ip === undefined ? text : formatIp(ip);
      })
      .join(separator);
  return plain(servers) === plain(field(thing, "servers").split(separator));
}
