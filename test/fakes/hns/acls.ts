import { type Document, ipv4, listOf, objectOf, prefixOf, textOf } from "./documents.ts";
import { hresult, Refusal } from "./refusal.ts";
import type { HnsStore } from "./store.ts";

const protocolNumbers = { ICMP: 1, TCP: 6, UDP: 17, SCTP: 132 } as const;
/** Those that have ports. */
const withPorts = [6, 17, 132];
const anyProtocol = 256;
const highestPort = 65_535;

const entries = (settings: Document, key: string): readonly string[] =>
  textOf(settings, key) === "" ? [] : textOf(settings, key).split(",");

/** `80`, `8000-8090`. */
function rangeOf(text: string): readonly [first: number, last: number] {
  const [first = -1, last = first] = /^\d+(-\d+)?$/.test(text) ? text.split("-").map(Number) : [];
  if (first < 0 || last < first || last > highestPort) throw refused(`the port ${text}`);
  return [first, last];
}

/** An address, or a block. */
function blockOf(text: string): ReturnType<typeof prefixOf> {
  try {
    return text.includes("/") ? prefixOf(text) : { first: ipv4(text), last: ipv4(text), length: 32 };
  } catch {
    throw refused(`the address ${text}`);
  }
}

const refused = (what: string): Refusal =>
  new Refusal(
    hresult.invalidPolicy,
    `The provided policy configuration is invalid or missing parameters: an ACL with ${what}.`,
  );

/** ACLs among an endpoint's policies. HNS takes no words in place of addresses. @throws {Refusal} */
export const checkAcls = (document: Document): void => aclsOf(document).forEach(checkAcl);

const aclsOf = (document: Document): readonly Document[] =>
  listOf(document, "Policies")
    .filter((policy) => textOf(policy, "Type") === "ACL")
    .map((policy) => objectOf(policy, "Settings"));

function checkAcl(settings: Document): void {
  const { Action, Direction, RuleType = "Switch", Priority = 0 } = settings;
  if (!["Allow", "Block", "Pass"].includes(String(Action))) throw refused(`the action ${Action}`);
  if (!["In", "Out"].includes(String(Direction))) throw refused(`the direction ${Direction}`);
  if (!["Switch", "Host"].includes(String(RuleType))) throw refused(`the rule type ${RuleType}`);
  if (!Number.isInteger(Priority) || Number(Priority) < 0 || Number(Priority) > 65_535)
    throw refused(`the priority ${Priority}`);
  const protocols = entries(settings, "Protocols");
  if (protocols.some((each) => !/^\d+$/.test(each) || Number(each) > anyProtocol)) throw refused("another protocol");
  for (const key of ["LocalAddresses", "RemoteAddresses"]) entries(settings, key).forEach(blockOf);
  for (const key of ["LocalPorts", "RemotePorts"]) {
    const ports = entries(settings, key);
    ports.forEach(rangeOf);
    if (ports.length > 0 && !protocols.every((each) => withPorts.includes(Number(each))))
      throw refused("ports of no protocol");
  }
}

/** One that is on its way from an endpoint's pod, or to it. */
interface Packet {
  readonly protocol: keyof typeof protocolNumbers;
  readonly source: string;
  readonly sourcePort?: number;
  readonly destination: string;
  readonly destinationPort?: number;
}

const reversed = ({ protocol, source, sourcePort, destination, destinationPort }: Packet): Packet => ({
  protocol,
  source: destination,
  destination: source,
  ...(destinationPort === undefined ? {} : { sourcePort: destinationPort }),
  ...(sourcePort === undefined ? {} : { destinationPort: sourcePort }),
});

const connectionText = ({ protocol, source, sourcePort, destination, destinationPort }: Packet): string =>
  [protocol, source, sourcePort, destination, destinationPort].join(" ");

/**
 * What the switch of HNS does with pods' packets, by the ACLs of their endpoints: of those that match, the one with the
 * lowest priority decides; with any ACL, what none lets through is refused; answers follow their connection. What real
 * ones do was read from others' use of them (Calico's, Azure's) and from Microsoft's answers, and not seen.
 */
export class PacketFilter {
  readonly #store: HnsStore;
  readonly #connections = new Set<string>();

  constructor(store: HnsStore) {
    this.#store = store;
  }

  /** Whether it arrives. One that does opens a connection, if it is no answer in one. */
  send(packet: Packet): boolean {
    if (this.#connections.has(connectionText(reversed(packet)))) return true;
    const [from, to] = [this.#endpointAt(packet.source), this.#endpointAt(packet.destination)];
    const arrives =
      (from === undefined || letsThrough(from, "Out", packet)) && (to === undefined || letsThrough(to, "In", packet));
    if (arrives) this.#connections.add(connectionText(packet));
    return arrives;
  }

  /** The first packet of a new connection to this port. */
  opens(source: string, destination: string, protocol: Packet["protocol"], destinationPort: number): boolean {
    const ports = protocol === "ICMP" ? {} : { sourcePort: 40_000, destinationPort };
    return new PacketFilter(this.#store).send({ protocol, source, destination, ...ports });
  }

  #endpointAt(address: string): Document | undefined {
    return [...this.#store.endpoints.values()].find((endpoint) =>
      listOf(endpoint, "IpConfigurations").some((entry) => textOf(entry, "IpAddress") === address),
    );
  }
}

function letsThrough(endpoint: Document, direction: "In" | "Out", packet: Packet): boolean {
  // Those of the host are for the node's firewall.
  const ofSwitch = aclsOf(endpoint).filter((acl) => acl["RuleType"] !== "Host");
  if (ofSwitch.length === 0) return true;
  const matching = ofSwitch.filter((acl) => acl["Direction"] === direction && matches(acl, packet));
  const first = Math.min(...matching.map((acl) => Number(acl["Priority"] ?? 0)));
  const actions = new Set(matching.filter((acl) => Number(acl["Priority"] ?? 0) === first).map((acl) => acl["Action"]));
  if (actions.size > 1) throw new Error(`ACLs of priority ${first} say ${[...actions].join(" and ")} to one packet`);
  return actions.has("Allow");
}

function matches(acl: Document, packet: Packet): boolean {
  const near = acl["Direction"] === "Out" ? packet : reversed(packet);
  const isIn = (key: string, port: number | undefined): boolean => {
    const ranges = entries(acl, key).map(rangeOf);
    return ranges.length === 0 || ranges.some(([first, last]) => port !== undefined && port >= first && port <= last);
  };
  const isAmong = (key: string, address: string): boolean => {
    const blocks = entries(acl, key).map(blockOf);
    return blocks.length === 0 || blocks.some(({ first, last }) => ipv4(address) >= first && ipv4(address) <= last);
  };
  const protocols = entries(acl, "Protocols").map(Number);
  return (
    (protocols.length === 0 ||
      protocols.some((each) => [anyProtocol, protocolNumbers[packet.protocol]].includes(each))) &&
    isIn("LocalPorts", near.sourcePort) &&
    isIn("RemotePorts", near.destinationPort) &&
    isAmong("LocalAddresses", near.source) &&
    isAmong("RemoteAddresses", near.destination)
  );
}
