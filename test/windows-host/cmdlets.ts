import type { Item, NodeState } from "./node-state.ts";
import type { Value } from "./read-script.ts";

/** What PowerShell says when a cmdlet fails: the message is the system's language, the id is not. */
export class CmdletError extends Error {
  readonly id: string;

  constructor(message: string, id: string) {
    super(message);
    this.id = id;
  }
}

export type Args = Readonly<Record<string, Value>>;

export interface Cmdlet {
  /** The parameters that it has, of those that the agent could mean. */
  readonly parameters: readonly string[];
  /** Changes the node: what a test counts, and where it lets the agent die. */
  readonly acts: boolean;
  run(state: NodeState, args: Args, input: readonly Item[] | undefined): readonly Item[];
}

const list = (table: (state: NodeState) => readonly Item[], parameters: readonly string[] = []): Cmdlet => ({
  parameters,
  acts: false,
  run: (state) => table(state),
});

const act = (
  parameters: readonly string[],
  run: (state: NodeState, args: Args, input: readonly Item[] | undefined) => void,
): Cmdlet => ({
  parameters,
  acts: true,
  run: (state, args, input) => {
    run(state, args, input);
    return [];
  },
});

const exists = (): never => {
  throw new CmdletError("The object already exists. ", "Windows System Error 5010,New-NetRoute");
};

/** CIM cmdlets that change for good ask first, and nobody is there to answer. */
function confirmed(args: Args, cmdlet: string): void {
  if (args["Confirm"] === false) return;
  throw new CmdletError("PowerShell is in NonInteractive mode.", `InvalidOperation,${cmdlet}`);
}

const without = (all: Item[], input: readonly Item[] | undefined): void => {
  for (const item of input ?? []) {
    const at = all.indexOf(item);
    if (at >= 0) all.splice(at, 1);
  }
};

function required(items: readonly Item[], what: string): Item {
  const [item] = items;
  if (item === undefined) throw new CmdletError(`No matching ${what} objects found. `, "CmdletizationQuery_NotFound");
  return item;
}

/** As on a system without the module that has it. */
const module = (cmdlet: string, table: (state: NodeState) => readonly Item[] | undefined, parameters: string[] = []) =>
  list((state) => {
    const items = table(state);
    if (items !== undefined) return items;
    throw new CmdletError(`The term '${cmdlet}' is not recognized as the name of a cmdlet`, "CommandNotFoundException");
  }, parameters);

/** The cmdlets that the agent uses, as far as their documentation says what they do. */
export const cmdlets: Readonly<Record<string, Cmdlet>> = {
  "Get-CimInstance": module("Get-CimInstance", ({ system }) => system, ["ClassName"]),
  "Get-WindowsFeature": module("Get-WindowsFeature", ({ features }) => features),
  "Get-Service": module("Get-Service", ({ services }) => services),
  "Get-NetUDPEndpoint": module("Get-NetUDPEndpoint", ({ udpEndpoints }) => udpEndpoints),
  "Get-MpPreference": module("Get-MpPreference", ({ preferences }) => preferences),
  "Get-NetAdapter": list((state) => state.adapters),
  "Get-NetIPAddress": list((state) => state.addresses),
  "Get-NetIPInterface": {
    parameters: ["IncludeAllCompartments"],
    acts: false,
    run: (state, { IncludeAllCompartments }) =>
      state.interfaces.filter((entry) => IncludeAllCompartments === true || (entry["CompartmentId"] ?? 1) === 1),
  },
  "Get-NetRoute": list((state) => state.routes),
  "Get-NetNeighbor": list((state) => state.neighbours),
  "Get-DnsClientServerAddress": list((state) => state.dnsServers),
  "Get-NetNat": list((state) => state.nats),
  "Get-VMNetworkAdapter": list((state) => state.vmAdapters, ["ManagementOS"]),
  "Get-VMSwitch": list((state) => state.switches),
  "Get-VMSwitchExtension": {
    parameters: [],
    acts: false,
    run: (state, _args, input = []) =>
      state.extensions.filter((entry) => input.some((one) => one["Name"] === entry["SwitchName"])),
  },
  "Set-NetIPInterface": act(
    ["InterfaceIndex", "AddressFamily", "Forwarding", "NlMtuBytes", "Dhcp"],
    (state, { InterfaceIndex, AddressFamily, NlMtuBytes, ...rest }, input) => {
      // By parameters only those of the host's own compartment are found.
      const named = state.interfaces.filter(
        (entry) =>
          (entry["CompartmentId"] ?? 1) === 1 &&
          entry["InterfaceIndex"] === InterfaceIndex &&
          (AddressFamily === undefined || entry["AddressFamily"] === AddressFamily),
      );
      if (input?.length === 0) return;
      const own = input ?? named;
      required(own, "MSFT_NetIPInterface");
      for (const entry of own) Object.assign(entry, rest, NlMtuBytes === undefined ? {} : { NlMtu: NlMtuBytes });
    },
  ),
  "New-NetRoute": act(
    ["InterfaceIndex", "DestinationPrefix", "NextHop", "RouteMetric", "PolicyStore"],
    (state, { PolicyStore, ...route }) => {
      if (!state.interfaces.some((entry) => entry["InterfaceIndex"] === route["InterfaceIndex"]))
        throw new CmdletError("Element not found. ", "Windows System Error 1168,New-NetRoute");
      const same = (entry: Item): boolean =>
        ["InterfaceIndex", "DestinationPrefix", "NextHop"].every((key) => entry[key] === route[key]);
      if (state.routes.some(same)) exists();
      state.routes.push({ ...route, ...(PolicyStore === undefined ? {} : { PolicyStore }) });
    },
  ),
  "Remove-NetRoute": act(["Confirm"], (state, args, input) => {
    confirmed(args, "Remove-NetRoute");
    without(state.routes, input);
  }),
  "New-NetNat": act(
    ["Name", "InternalIPInterfaceAddressPrefix"],
    (state, { Name, InternalIPInterfaceAddressPrefix }) => {
      if (state.nats.some((entry) => entry["Name"] === Name)) exists();
      state.nats.push({
        Name: String(Name),
        InternalIPInterfaceAddressPrefix: String(InternalIPInterfaceAddressPrefix),
      });
    },
  ),
  "Remove-NetNat": act(["Confirm"], (state, args, input) => {
    confirmed(args, "Remove-NetNat");
    without(state.nats, input);
  }),
  "Rename-NetAdapter": act(["NewName"], (state, { NewName }, input = []) => {
    if (state.adapters.some((entry) => entry["Name"] === NewName && !input.includes(entry))) exists();
    for (const entry of input) entry["Name"] = String(NewName);
  }),
  "Rename-VMNetworkAdapter": act(["NewName"], (state, { NewName }, input = []) => {
    for (const entry of input) {
      entry["Name"] = String(NewName);
      // Windows shows the switch's adapter under a name of its own making.
      const shown = state.adapters.find((one) => one["Virtual"] === true && plain(one) === plain(entry));
      if (shown !== undefined) shown["Name"] = `vEthernet (${NewName})`;
    }
  }),
  "Enable-NetAdapter": act(["Confirm"], (_state, args, input = []) => {
    confirmed(args, "Enable-NetAdapter");
    for (const entry of input) entry["Status"] = "Up";
  }),
  "Set-NetAdapter": act(["MacAddress", "Confirm"], (_state, args, input = []) => {
    confirmed(args, "Set-NetAdapter");
    for (const entry of input) entry["MacAddress"] = String(args["MacAddress"]);
  }),
  "Remove-NetIPAddress": act(["Confirm"], (state, args, input) => {
    confirmed(args, "Remove-NetIPAddress");
    without(state.addresses, input);
  }),
  "New-NetNeighbor": act(
    ["InterfaceIndex", "IPAddress", "LinkLayerAddress", "State", "PolicyStore"],
    (state, neighbour) => {
      const same = (entry: Item): boolean =>
        ["InterfaceIndex", "IPAddress"].every((key) => entry[key] === neighbour[key]);
      if (state.neighbours.some(same)) exists();
      state.neighbours.push({ ...neighbour });
    },
  ),
  "Remove-NetNeighbor": act(["Confirm"], (state, args, input) => {
    confirmed(args, "Remove-NetNeighbor");
    without(state.neighbours, input);
  }),
  "New-NetIPAddress": act(
    ["InterfaceIndex", "IPAddress", "PrefixLength", "DefaultGateway", "PolicyStore"],
    (state, { DefaultGateway, ...address }) => {
      if (state.addresses.some((entry) => entry["IPAddress"] === address["IPAddress"])) exists();
      state.addresses.push({ ...address });
      const { InterfaceIndex = 0 } = address;
      if (DefaultGateway !== undefined)
        state.routes.push({
          InterfaceIndex,
          DestinationPrefix: "0.0.0.0/0",
          NextHop: DefaultGateway,
          RouteMetric: 256,
        });
    },
  ),
  "Set-DnsClientServerAddress": act(
    ["InterfaceIndex", "ServerAddresses"],
    (state, { InterfaceIndex, ServerAddresses }) => {
      const own = required(
        state.dnsServers.filter((entry) => entry["InterfaceIndex"] === InterfaceIndex),
        "DnsClientServerAddress",
      );
      own["ServerAddresses"] = ServerAddresses ?? [];
    },
  ),
  "Enable-VMSwitchExtension": act([], (_state, _args, input = []) => {
    for (const entry of input) entry["Enabled"] = true;
  }),
  "Disable-VMSwitchExtension": act([], (_state, _args, input = []) => {
    for (const entry of input) entry["Enabled"] = false;
  }),
  "Set-VMSwitch": act(["EnableSoftwareRsc"], (_state, { EnableSoftwareRsc }, input = []) => {
    for (const entry of input) entry["SoftwareRscEnabled"] = EnableSoftwareRsc === true;
  }),
};

const plain = (item: Item): string => String(item["MacAddress"]).replaceAll("-", "");
