import type { Value } from "./read-script.ts";

/** An object of Windows', by the properties that it really has. */
export type Item = Record<string, Value>;

export interface NodeState {
  adapters: Item[];
  addresses: Item[];
  interfaces: Item[];
  routes: Item[];
  neighbours: Item[];
  dnsServers: Item[];
  nats: Item[];
  vmAdapters: Item[];
  switches: Item[];
  extensions: Item[];
  /** What an installation looks at; absent: such a system does not say. */
  features?: Item[];
  system?: Item[];
  services?: Item[];
  udpEndpoints?: Item[];
  preferences?: Item[];
}

export const cardIndex = 7;
const virtualIndex = 21;
const portIndex = 33;
export const mac = "00-15-5D-01-02-03";

const interfaceOf = (index: number): Item => ({
  InterfaceIndex: index,
  AddressFamily: "IPv4",
  Forwarding: "Disabled",
  NlMtu: 1500,
  Dhcp: "Disabled",
});

/** A node as it comes: one card with the node's address, and a loopback. */
export const freshNode = (): NodeState => ({
  adapters: [{ Name: "Ethernet0", InterfaceIndex: cardIndex, MacAddress: mac, Virtual: false, Status: "Up" }],
  addresses: [
    { IPAddress: "192.168.1.5", InterfaceIndex: cardIndex, PrefixLength: 24 },
    { IPAddress: "fe80::1%7", InterfaceIndex: cardIndex, PrefixLength: 64 },
    { IPAddress: "127.0.0.1", InterfaceIndex: 1, PrefixLength: 8 },
  ],
  interfaces: [interfaceOf(1), interfaceOf(cardIndex)],
  routes: [
    { InterfaceIndex: cardIndex, DestinationPrefix: "0.0.0.0/0", NextHop: "192.168.1.1", RouteMetric: 256 },
    { InterfaceIndex: cardIndex, DestinationPrefix: "10.96.0.0/12", NextHop: "192.168.1.1", RouteMetric: 5 },
    { InterfaceIndex: cardIndex, DestinationPrefix: "192.168.1.0/24", NextHop: "0.0.0.0", RouteMetric: 256 },
  ],
  neighbours: [],
  dnsServers: [
    { InterfaceIndex: 1, ServerAddresses: [] },
    { InterfaceIndex: cardIndex, ServerAddresses: ["192.168.1.2", "192.168.1.3"] },
  ],
  nats: [],
  vmAdapters: [],
  switches: [],
  extensions: [],
});

/** What Windows' HNS does when it makes a network on the card; `moves`: whether address and routes come along. */
export function makeHnsNetwork(state: NodeState, name: string, moves: boolean): void {
  const Name = "vEthernet (Ethernet0)";
  state.adapters.push({ Name, InterfaceIndex: virtualIndex, MacAddress: mac, Virtual: true, Status: "Up" });
  state.vmAdapters.push({ Name: "Ethernet0", SwitchName: name, MacAddress: mac.replaceAll("-", "") });
  state.switches.push({ Name: name, SoftwareRscEnabled: false });
  state.extensions.push(
    { SwitchName: name, Id: "E7C3B2F0-F3C5-48DF-AF2B-10FED6D72E7A", Enabled: true },
    { SwitchName: name, Id: "583CC151-73EC-4A6A-8B47-578297AD7623", Enabled: false },
  );
  state.interfaces.push(interfaceOf(virtualIndex));
  state.dnsServers.push({ InterfaceIndex: virtualIndex, ServerAddresses: [] });
  if (moves) move(state, cardIndex, virtualIndex);
  else drop(state, cardIndex);
}

/** What Open vSwitch does for an internal port: an adapter that is switched off, with an address of its own choosing. */
export function makeInternalPort(state: NodeState, Name: string): void {
  const MacAddress = "00-15-5D-0A-0B-0C";
  state.adapters.push({ Name, InterfaceIndex: portIndex, MacAddress, Virtual: true, Status: "Disabled" });
  state.interfaces.push(interfaceOf(portIndex));
  state.dnsServers.push({ InterfaceIndex: portIndex, ServerAddresses: [] });
}

/** The adapter of an endpoint, which comes with its first container, in that one's compartment. */
export function startContainer(state: NodeState, endpoint: string): void {
  const InterfaceIndex = 100 + state.interfaces.length;
  const InterfaceAlias = `vEthernet (${endpoint})`;
  state.interfaces.push({ ...interfaceOf(InterfaceIndex), InterfaceAlias, CompartmentId: InterfaceIndex });
}

/** And when the port goes. */
export function deleteInternalPort(state: NodeState): void {
  for (const table of ["adapters", "addresses", "interfaces", "routes", "neighbours", "dnsServers"] as const)
    state[table] = state[table].filter((entry) => entry["InterfaceIndex"] !== portIndex);
}

/** And when it takes the network away. */
export function deleteHnsNetwork(state: NodeState, name: string, handsBack: boolean): void {
  if (!state.switches.some((entry) => entry["Name"] === name)) return;
  if (handsBack) move(state, virtualIndex, cardIndex);
  else drop(state, virtualIndex);
  const isGone = (entry: Item): boolean => entry["SwitchName"] === name;
  state.vmAdapters = state.vmAdapters.filter((entry) => !isGone(entry));
  state.extensions = state.extensions.filter((entry) => !isGone(entry));
  state.switches = state.switches.filter((entry) => entry["Name"] !== name);
  for (const table of ["adapters", "addresses", "interfaces", "routes", "dnsServers"] as const)
    state[table] = state[table].filter((entry) => entry["InterfaceIndex"] !== virtualIndex);
}

/** What an adapter has of its own kind, and what was only put there, stays with it. */
const isOwn = (entry: Item): boolean =>
  !String(entry["IPAddress"] ?? "").startsWith("fe80") && entry["PolicyStore"] === undefined;

function move(state: NodeState, from: number, to: number): void {
  for (const table of [state.addresses, state.routes])
    for (const entry of table) if (entry["InterfaceIndex"] === from && isOwn(entry)) entry["InterfaceIndex"] = to;
  const [source, target] = [from, to].map((index) => state.dnsServers.find((one) => one["InterfaceIndex"] === index));
  if (source === undefined || target === undefined) return;
  target["ServerAddresses"] = source["ServerAddresses"] ?? [];
  source["ServerAddresses"] = [];
}

function drop(state: NodeState, index: number): void {
  state.addresses = state.addresses.filter((entry) => entry["InterfaceIndex"] !== index || !isOwn(entry));
  state.routes = state.routes.filter((entry) => entry["InterfaceIndex"] !== index);
  for (const entry of state.dnsServers) if (entry["InterfaceIndex"] === index) entry["ServerAddresses"] = [];
}
