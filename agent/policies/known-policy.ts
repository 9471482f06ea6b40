import { bitsOf, type Cidr, firstOf, formatCidr } from "../../shared/net/ip.ts";
import type { BlockPeer, Direction, Port } from "../../shared/policy/mod.ts";
import { readIp } from "../../shared/proto/control-plane-addresses.ts";
import { NetworkPolicyMessage } from "../../shared/proto/control-plane-messages.ts";
import { WireError } from "../../shared/proto/wire.ts";
import type { PolicyName } from "../datapath/policies.ts";

/** A NetworkPolicy as the controller computed it, read so that what is not understood opens nothing. */
export interface KnownPolicy {
  readonly name: PolicyName;
  readonly generation: number;
  /** AppliedToGroups. */
  readonly appliedTo: readonly string[];
  /** In which it isolates its targets. */
  readonly directions: readonly Direction[];
  /** What it allows; nothing where it is refused. */
  readonly rules: readonly KnownRule[];
  /** Why it is not enforced, if so. Its targets stay isolated. */
  readonly refused?: string;
  /** As it came, to be kept. */
  readonly raw: Uint8Array;
}

export interface KnownRule {
  /** Follows from the policy's uid and the rule's text. */
  readonly id: string;
  readonly direction: Direction;
  /** Whether its blocks are all addresses of both families. */
  readonly isAnybody: boolean;
  /** AddressGroups. */
  readonly groups: readonly string[];
  readonly blocks: readonly BlockPeer[];
  /** Absent: every port of every protocol. */
  readonly ports?: readonly Port[];
}

type RuleMessage = NetworkPolicyMessage["rules"][number];
type Service = RuleMessage["services"][number];

/** Something that only policies of Antrea's own kinds have. */
class Refusal extends Error {}

/** @throws {WireError} for what is no policy at all */
export function readPolicy(raw: Uint8Array): KnownPolicy {
  const message = NetworkPolicyMessage.decode(raw);
  const { metadata, sourceRef } = message;
  const uid = metadata.name;
  if (uid === "") throw new WireError("Cannot read a NetworkPolicy: it has no name");
  const name = { namespace: sourceRef?.namespace ?? "", name: sourceRef?.name ?? uid, uid };
  const known = {
    name,
    generation: metadata.generation,
    appliedTo: [...new Set([...message.appliedToGroups, ...message.rules.flatMap((rule) => rule.appliedToGroups)])],
    directions: [...new Set(message.rules.map(directionOf))],
    // A view would keep all that came with it.
    raw: raw.slice(),
  };
  try {
    requireKubernetes(message);
    return { ...known, rules: message.rules.flatMap((rule) => readRule(uid, rule)) };
  } catch (caught) {
    if (!(caught instanceof Refusal)) throw caught;
    return { ...known, rules: [], refused: caught.message };
  }
}

function directionOf({ direction }: RuleMessage): Direction {
  if (direction === "In") return "ingress";
  if (direction === "Out") return "egress";
  throw new WireError(`Cannot read a NetworkPolicy: the direction of a rule is "${direction}", wanted "In" or "Out"`);
}

function requireKubernetes({ sourceRef, tierPriority }: NetworkPolicyMessage): void {
  const type = sourceRef?.type ?? "";
  if (type !== "K8sNetworkPolicy")
    throw new Refusal(`it is of the kind "${type}", wanted a NetworkPolicy of Kubernetes`);
  if (tierPriority === true) throw new Refusal("it has a tier");
}

function readRule(uid: string, rule: RuleMessage): KnownRule[] {
  const { action, services, appliedToGroups, l7Protocols } = rule;
  if (appliedToGroups.length > 0) throw new Refusal("a rule of it applies to pods of its own");
  if (l7Protocols === true) throw new Refusal("a rule of it looks into the application's protocol");
  if (action !== "" && action !== "Allow") throw new Refusal(`the action of a rule is "${action}"`);
  const direction = directionOf(rule);
  const { addressGroups: groups, ipBlocks, ...others } = direction === "ingress" ? rule.from : rule.to;
  if (others.fqdns === true) throw new Refusal("a rule of it names peers by their domain");
  if (others.toServices === true) throw new Refusal("a rule of it names Services as peers");
  if (others.labelIdentities === true) throw new Refusal("a rule of it names pods of other clusters as peers");
  // It only isolates, or nothing of its peers was understood.
  if (action === "" || groups.length + ipBlocks.length === 0) return [];
  const blocks = ipBlocks.map(readBlock);
  const ports = services.length === 0 ? undefined : services.map(readPort);
  const text = JSON.stringify([uid, direction, groups, blocks.map(textOfBlock), ports]);
  const id = new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, idDigits);
  return [{ id, direction, isAnybody: isAnybody(blocks), groups, blocks, ...(ports === undefined ? {} : { ports }) }];
}

/** 64 bits: with a million rules two have the same once in 37 million clusters. */
const idDigits = 16;

const isAnybody = (blocks: readonly BlockPeer[]): boolean =>
  [4, 6].every((family) =>
    blocks.some(({ cidr, except }) => cidr.ip.family === family && cidr.prefix === 0 && except.length === 0),
  );

const textOfBlock = ({ cidr, except }: BlockPeer): string[] => [cidr, ...except].map(formatCidr);

const readBlock = ({ cidr, except }: RuleMessage["from"]["ipBlocks"][number]): BlockPeer => ({
  t: "block",
  cidr: readNet(cidr),
  except: except.map(readNet),
});

function readNet({ ip: bytes, prefixLength: prefix }: { ip: Uint8Array; prefixLength: number }): Cidr {
  const ip = readIp(bytes);
  if (prefix < 0 || prefix > bitsOf(ip.family)) throw new Refusal(`a block of it has a prefix of ${prefix} bits`);
  return { ip: firstOf({ ip, prefix }), prefix };
}

const highestPort = 65_535;

function readPort({ protocol, port, endPort, groupAddress, srcPort, srcEndPort }: Service): Port {
  if (protocol !== "TCP" && protocol !== "UDP" && protocol !== "SCTP")
    throw new Refusal(`a rule of it is about the protocol "${protocol}"`);
  if (groupAddress !== "" || srcPort === true || srcEndPort === true)
    throw new Refusal("a rule of it is about more than a destination's port");
  if (port === undefined) {
    if (endPort !== 0) throw new Refusal("a range of ports has no beginning");
    return { protocol };
  }
  if (port.type === 1) {
    if (port.text === "" || endPort !== 0) throw new Refusal(`a port of it is called "${port.text}"`);
    return { protocol, port: port.text };
  }
  const last = endPort === 0 ? port.number : endPort;
  if (port.number < 1 || last < port.number || last > highestPort)
    throw new Refusal(`a port of it is ${port.number} to ${last}`);
  return { protocol, port: port.number, ...(last === port.number ? {} : { endPort: last }) };
}
