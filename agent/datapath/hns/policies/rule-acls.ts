import { formatCidr } from "../../../../shared/net/ip.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import type { PodRule, RefusedRule, RulePeers, RulePorts } from "../../policies.ts";
import { addressesIn, apart, blocksIn, portsIn } from "../../policy-ranges.ts";
import { type Acl, aclId } from "./acl.ts";

/** Between equal priorities it is not known which goes first, so that each kind has its own. */
export const priorities = { exempt: 1000, rules: 1001, rest: 1002 } as const;

/** Of blocks and of ports in one ACL: Microsoft has told Calico to stay at a few thousand. */
const maxEntries = 4_000;
const highestPort = 65_535n;

export const aclDirection = { ingress: "In", egress: "Out" } as const;
/** Those of the end that was connected to. */
const portsKey = { ingress: "LocalPorts", egress: "RemotePorts" } as const;

/** What a rule allows, as ACLs of each of its pods; none where it allows nobody. */
export function aclsOf({ id, policy, direction, peers, ports }: PodRule): readonly Acl[] | RefusedRule {
  if (ports?.some(({ protocol }) => protocol === "SCTP") === true)
    return { id, reason: "it names SCTP, which pods on Windows do not have" };
  const addresses =
    peers === undefined ? [{}] : inParts(blocksOf(peers)).map((RemoteAddresses) => ({ RemoteAddresses }));
  return (ports === undefined ? [{}] : services(ports, direction)).flatMap((service) =>
    addresses.map((of) => ({
      Id: aclId(policy.namespace, policy.name),
      Action: "Allow",
      Direction: aclDirection[direction],
      RuleType: "Switch",
      Priority: priorities.rules,
      ...service,
      ...of,
    })),
  );
}

/** HNS knows no exceptions: what is left of a block without them is several blocks. Pods have IPv4 alone. */
function blocksOf({ sets, blocks }: RulePeers): readonly string[] {
  const members = sets.flatMap(({ ips }) => ips.filter(({ family }) => family === 4));
  const ranges = apart([...members.map(({ value }) => ({ first: value, last: value })), ...addressesIn(blocks, 4)]);
  return ranges.flatMap((range) => blocksIn(range, 4).map(formatCidr));
}

function services(ports: readonly RulePorts[], direction: Direction): readonly Partial<Acl>[] {
  const byProtocol = Map.groupBy(portsIn(ports), ({ protocol }) => protocol);
  return [...byProtocol].flatMap(([protocol, ranges]): readonly Partial<Acl>[] => {
    const Protocols = String(protocol);
    if (ranges.some(({ first, last }) => first === 0n && last === highestPort)) return [{ Protocols }];
    const texts = ranges.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`));
    return inParts(texts).map((list) => ({ Protocols, [portsKey[direction]]: list }));
  });
}

function inParts(entries: readonly string[]): readonly string[] {
  const parts: string[] = [];
  for (let at = 0; at < entries.length; at += maxEntries) parts.push(entries.slice(at, at + maxEntries).join());
  return parts;
}
