import { assert } from "../../../../shared/assert.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Cidr, type Ip, parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import type { HostRunner } from "./powershell.ts";
import type { Listing, Row, Statement } from "./script.ts";

/**
 * The listings that steps read. Each lists everything: a look-up by name would answer "none" and "not allowed" with
 * errors that differ only in their English text.
 */
export const listings = {
  adapters: { cmdlet: "Get-NetAdapter", fields: ["Name", "InterfaceIndex", "MacAddress", "Virtual", "Status"] },
  addresses: { cmdlet: "Get-NetIPAddress", fields: ["IPAddress", "InterfaceIndex", "PrefixLength"] },
  interfaces: {
    cmdlet: "Get-NetIPInterface",
    fields: ["InterfaceIndex", "InterfaceAlias", "AddressFamily", "Forwarding", "NlMtu", "Dhcp"],
  },
  /** Also those that only containers see. */
  podInterfaces: {
    cmdlet: "Get-NetIPInterface",
    args: { IncludeAllCompartments: true },
    fields: ["InterfaceIndex", "InterfaceAlias", "AddressFamily", "Forwarding", "NlMtu", "Dhcp"],
  },
  routes: {
    cmdlet: "Get-NetRoute",
    fields: ["InterfaceIndex", "InterfaceAlias", "DestinationPrefix", "NextHop", "RouteMetric"],
  },
  neighbours: { cmdlet: "Get-NetNeighbor", fields: ["InterfaceIndex", "IPAddress", "LinkLayerAddress", "State"] },
  dnsServers: { cmdlet: "Get-DnsClientServerAddress", fields: ["InterfaceIndex", "ServerAddresses[]"] },
  nats: { cmdlet: "Get-NetNat", fields: ["Name", "InternalIPInterfaceAddressPrefix"] },
  vmAdapters: {
    cmdlet: "Get-VMNetworkAdapter",
    args: { ManagementOS: true },
    fields: ["Name", "SwitchName", "MacAddress"],
  },
  switches: { cmdlet: "Get-VMSwitch", fields: ["Name", "SoftwareRscEnabled"] },
  extensions: {
    cmdlet: "Get-VMSwitch",
    through: { cmdlet: "Get-VMSwitchExtension" },
    fields: ["SwitchName", "Id", "Enabled"],
  },
} as const satisfies Record<string, Listing>;

export type TableName = keyof typeof listings;

export interface Adapter {
  readonly name: string;
  readonly index: number;
  /** Twelve lower-case digits, whatever the source writes between them; empty where it has none. */
  readonly mac: string;
  /** Made by a switch or a driver: not a card. */
  readonly virtual: boolean;
  /** Switched off by somebody, or not switched on yet. */
  readonly disabled: boolean;
}
export interface Address {
  readonly ip: Ip;
  readonly index: number;
  readonly prefix: number;
}
export interface IpInterface {
  readonly index: number;
  readonly alias: string;
  readonly family: 4 | 6;
  readonly forwarding: string;
  readonly mtu: number;
  readonly dhcp: boolean;
}
export interface HostRoute {
  readonly index: number;
  readonly alias: string;
  readonly destination: Cidr;
  readonly nextHop: Ip;
  readonly metric: number;
}
export interface Neighbour {
  readonly index: number;
  readonly ip: Ip;
  /** As an adapter's. */
  readonly mac: string;
  /** Declared, not learned. */
  readonly permanent: boolean;
}
export interface Nat {
  readonly name: string;
  /** Absent for one without an internal prefix. */
  readonly prefix: Cidr | undefined;
}
export interface VmAdapter {
  readonly name: string;
  readonly switchName: string;
  readonly mac: string;
}

interface Readers {
  adapters: Adapter;
  addresses: Address;
  interfaces: IpInterface;
  podInterfaces: IpInterface;
  routes: HostRoute;
  neighbours: Neighbour;
  dnsServers: { readonly index: number; readonly servers: readonly string[] };
  nats: Nat;
  vmAdapters: VmAdapter;
  switches: { readonly name: string; readonly softwareRsc: boolean };
  extensions: { readonly switchName: string; readonly id: string; readonly enabled: boolean };
}

const readInterface = (at: Reader): IpInterface => ({
  index: at.number("InterfaceIndex"),
  alias: at.text("InterfaceAlias"),
  family: at.parsed("AddressFamily", "IPv4 or IPv6", (text) => (text === "IPv4" ? 4 : text === "IPv6" ? 6 : undefined)),
  forwarding: at.parsed("Forwarding", "Enabled or Disabled", (text) =>
    text === "Enabled" || text === "Disabled" ? text : undefined,
  ),
  mtu: at.number("NlMtu"),
  dhcp: at.text("Dhcp") === "Enabled",
});

const readers: { readonly [Name in TableName]: (at: Reader) => Readers[Name] } = {
  adapters: (at) => ({
    name: at.text("Name"),
    index: at.number("InterfaceIndex"),
    mac: plainMac(at.text("MacAddress")),
    virtual: at.flag("Virtual"),
    disabled: at.text("Status") === "Disabled",
  }),
  addresses: (at) => ({
    // `fe80::1%12`: the zone is the interface once more.
    ip: at.parsed("IPAddress", "an address", (text) => parseIp(text.replace(/%.*$/, ""))),
    index: at.number("InterfaceIndex"),
    prefix: at.number("PrefixLength"),
  }),
  interfaces: readInterface,
  podInterfaces: readInterface,
  routes: (at) => ({
    index: at.number("InterfaceIndex"),
    alias: at.text("InterfaceAlias"),
    destination: at.parsed("DestinationPrefix", "a prefix", parseCidr),
    nextHop: at.parsed("NextHop", "an address", (text) => parseIp(text.replace(/%.*$/, ""))),
    metric: at.number("RouteMetric"),
  }),
  neighbours: (at) => ({
    index: at.number("InterfaceIndex"),
    ip: at.parsed("IPAddress", "an address", (text) => parseIp(text.replace(/%.*$/, ""))),
    mac: plainMac(at.text("LinkLayerAddress")),
    permanent: at.text("State") === "Permanent",
  }),
  dnsServers: (at) => ({ index: at.number("InterfaceIndex"), servers: at.list("ServerAddresses") }),
  nats: (at) => ({ name: at.text("Name"), prefix: parseCidr(at.text("InternalIPInterfaceAddressPrefix")) }),
  vmAdapters: (at) => ({
    name: at.text("Name"),
    switchName: at.text("SwitchName"),
    mac: plainMac(at.text("MacAddress")),
  }),
  switches: (at) => ({ name: at.text("Name"), softwareRsc: at.flag("SoftwareRscEnabled") }),
  extensions: (at) => ({ switchName: at.text("SwitchName"), id: at.text("Id"), enabled: at.flag("Enabled") }),
};

/** The result of one reading; a table that was not requested is a bug and not an empty table. */
export class Tables {
  readonly #rows: ReadonlyMap<TableName, readonly unknown[]>;

  private constructor(rows: ReadonlyMap<TableName, readonly unknown[]>) {
    this.#rows = rows;
  }

  /**
   * Lists `names` in one process, since starting one is what costs.
   * @param first statements that run before, in the same process
   * @throws {CniError} 102 where anything fails or a property is not what it should be
   */
  static async list(
    run: HostRunner,
    action: string,
    names: Iterable<TableName>,
    first: readonly Statement[] = [],
  ): Promise<Tables> {
    const wanted = [...new Set(names)];
    const answer = await run.run(action, [...first, ...wanted.map((name) => listings[name])]);
    return new Tables(
      new Map(
        wanted.map((name, at) => [
          name,
          (answer.get(first.length + at) ?? []).map((row) =>
            readers[name](new Reader(action, listings[name].cmdlet, row)),
          ),
        ]),
      ),
    );
  }

  get<Name extends TableName>(name: Name): readonly Readers[Name][] {
    const rows = this.#rows.get(name);
    assert(rows !== undefined, `table "${name}" was listed before it is read`);
    return rows as readonly Readers[Name][];
  }
}

/** Reads and checks the properties of one row; a property that Windows does not have is empty. */
class Reader {
  readonly #action: string;
  readonly #cmdlet: string;
  readonly #row: Row;

  constructor(action: string, cmdlet: string, row: Row) {
    this.#action = action;
    this.#cmdlet = cmdlet;
    this.#row = row;
  }

  text(field: string): string {
    const value = this.#row[field];
    return typeof value === "string" ? value : this.#refuse(field, "a text");
  }

  list(field: string): readonly string[] {
    const value = this.#row[field];
    return typeof value === "object" ? value : this.#refuse(field, "a list");
  }

  number(field: string): number {
    return this.parsed(field, "a whole number", (text) => (/^\d{1,10}$/.test(text) ? Number(text) : undefined));
  }

  flag(field: string): boolean {
    return this.parsed(field, "True or False", (text) =>
      text === "True" ? true : text === "False" ? false : undefined,
    );
  }

  parsed<T>(field: string, wanted: string, parse: (text: string) => T | undefined): T {
    return parse(this.text(field)) ?? this.#refuse(field, wanted);
  }

  #refuse(field: string, wanted: string): never {
    const value = JSON.stringify(this.#row[field]) ?? "missing";
    throw new CniError(
      CniCode.interfaceFailure,
      `Cannot ${this.#action}: ${field} of ${this.#cmdlet} is ${value}, wanted ${wanted}`,
      { details: JSON.stringify(this.#row) },
    );
  }
}

/** `00-15-5D-01-02-03`, `00155D010203` and `00:15:5d:01:02:03` are one. */
export const plainMac = (text: string): string => text.replace(/[^0-9A-Fa-f]/g, "").toLowerCase();

/** Windows' names of adapters and switches do not differ by case. */
export const sameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();
