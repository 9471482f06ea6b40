import { type Cidr, type Family, firstOf } from "../../../../shared/net/ip.ts";
import {
  among,
  compare,
  constant,
  counter,
  destinationKindAtNode,
  drop,
  type Expression,
  type Field,
  forget,
  type Hook,
  inputInterfaceName,
  ipBytes,
  isTranslated,
  jumpByRegisters,
  keepFor,
  leadTo,
  loads,
  lookUp,
  markWith,
  masked,
  masquerade,
  networkFamily,
  notAmong,
  outputInterfaceName,
  packetMark,
  packetPriority,
  payload,
  type Rule,
  randomBelow,
  rejectAsClosed,
  reset,
  setPriority,
  sourceKind,
  type Table,
  upperProtocol,
} from "../../../protocols/netlink/mod.ts";
import type { Ruleset } from "../../linux/rule-keeper.ts";
import { destination6, is, rulesOf, source4, source6, Upper, upperDestinationPort } from "../frame-fields.ts";
import { ifnameBytes, noRedirects, type PolicedBridge, routedByNode } from "../policies/node-chains.ts";
import { type Choice, choiceName, ownListFrom } from "./choice.ts";
import { mark } from "./service-elements.ts";
import { allSets, type Entrances, type ServiceSets, type Side } from "./service-sets.ts";

/** What the agent is told about services. */
export interface ServiceOptions {
  /** Also what the node and others send, and other addresses than cluster IPs. */
  readonly proxyAll: boolean;
  /** Blocks of the node's addresses at which node ports answer; none of a family: all but loopback. */
  readonly nodePortAddresses: readonly Cidr[];
}

/** NF_INET_PRE_ROUTING, NF_INET_LOCAL_OUT and NF_INET_POST_ROUTING, before others translate, host ports and our own masquerade included. */
const hooks: Readonly<Record<"prerouting" | "output" | "postrouting", Hook>> = {
  prerouting: { number: 0, priority: -110, translates: true },
  output: { number: 3, priority: -110, translates: true },
  postrouting: { number: 4, priority: 85, translates: true },
};

/** Notes on a connection's first packet, between the hooks, that its source is to be hidden; kube-proxy and others have other bits. */
const hiddenMark = 0x2000;
/** So long after a pod has reached itself by a service it need not be noted again. */
const hairpinSeconds = 60;

const destination4 = payload("network", 16, 4);
const fields: Readonly<Record<Family, { source: Field; destination: Field }>> = {
  4: { source: source4, destination: destination4 },
  6: { source: source6, destination: destination6 },
};
const packetsOf: Readonly<Record<Family, readonly Expression[]>> = {
  4: compare(networkFamily, "eq", Uint8Array.of(2)),
  6: compare(networkFamily, "eq", Uint8Array.of(10)),
};
/** RTN_LOCAL, in the machine's byte order. */
const localAddress = new Uint8Array(Uint32Array.of(2).buffer);
const isOwnAddress = compare(destinationKindAtNode, "eq", localAddress);
const isNotLoopback: Readonly<Record<Family, readonly Expression[]>> = {
  4: compare(payload("network", 16, 1), "neq", Uint8Array.of(127)),
  6: compare(
    destination6,
    "neq",
    Uint8Array.from({ length: 16 }, (_, i) => (i === 15 ? 1 : 0)),
  ),
};

/** Puts into the registers from 0 on what packets know an entrance by. */
const entrance = ({ family, by }: Entrances): readonly Field[] => [
  ...(by === "address" ? [fields[family].destination] : []),
  upperProtocol,
  upperDestinationPort,
];

/** Behind an endpoint's address and port, of either family. */
const clientAt = 5;
const noSlot = 0xffff_ffff;

const registersOf = (of: readonly Field[]): number => of.reduce((sum, { bytes }) => sum + Math.ceil(bytes / 4), 0);

/** Chains that every packet of new connections meets, whatever services there are. */
export function serviceRuleset(
  table: Table,
  sets: readonly ServiceSets[],
  bridges: readonly PolicedBridge[],
  options: ServiceOptions,
): Ruleset {
  const rule = rulesOf(table);
  const isAt = (field: Field, name: string): readonly Expression[] => compare(field, "eq", ifnameBytes(name));
  // The bridge itself does not tell in postrouting where a packet that `br_netfilter` has translated came in.
  const fromPods = bridges.flatMap(({ name }) => {
    const isFromPods = isAt(inputInterfaceName, name);
    return [
      ...sets.map(({ family, hairpins }) => {
        const { source } = fields[family];
        const pair = [...loads(0, source, source), keepFor(hairpins.name, { key: 0 }, hairpinSeconds)];
        return rule("prerouting", "a pod", [...isFromPods, ...packetsOf[family], ...pair]);
      }),
      rule("prerouting", "pods", isFromPods, "inside"),
    ];
  });
  const whole = [
    rule("prerouting", "others", [], "outside"),
    rule("output", "the node", [], "inside"),
    ...sideRules(table, "outside", sets, options),
    ...sourceRules(table),
  ];
  const hairpins = bridges.flatMap(({ name }) =>
    sets.map(({ family, hairpins }) => {
      const { source, destination } = fields[family];
      const back = [...packetsOf[family], ...isTranslated, ...isAt(outputInterfaceName, name)];
      const itself = among(hairpins.name, source, destination);
      return rule("postrouting", "a pod and itself", [...back, ...itself, masquerade]);
    }),
  );
  const redirects = noRedirects(table, bridges);
  return {
    table,
    sets: sets.flatMap(allSets),
    hooks: new Map([...Object.entries(hooks), ...(redirects.hook ? [[redirects.name, redirects.hook] as const] : [])]),
    rules: [
      ...fromPods,
      ...sideRules(table, "inside", sets, options),
      ...(options.proxyAll ? whole : []),
      ...hairpins,
      ...redirects.rules(),
    ],
  };
}

function sideRules(
  table: Table,
  side: Side,
  sets: readonly ServiceSets[],
  { proxyAll, nodePortAddresses }: ServiceOptions,
): readonly Rule[] {
  const rule = rulesOf(table);
  return sets.flatMap(({ family, byAddress: addresses, byNodePort, bounded, sources }) => {
    const lead = (by: Entrances): readonly Expression[] => [
      ...loads(0, ...entrance(by)),
      jumpByRegisters(by.sides[side].name, 0),
    ];
    const { source, destination } = fields[family];
    const key = [destination, upperProtocol, upperDestinationPort];
    const packets = packetsOf[family];
    const byAddress = rule(side, "addresses of services", [...packets, ...lead(addresses)]);
    if (!proxyAll) return [byAddress];
    const blocks = nodePortAddresses.filter(({ ip }) => ip.family === family);
    const within = blocks.length === 0 ? [[]] : blocks.map((block) => isIn(destination, block));
    const atNode = [...packets, ...isOwnAddress, ...isNotLoopback[family]];
    return [
      rule(side, "who may come", [
        ...packets,
        ...among(bounded.name, ...key),
        ...notAmong(sources.name, ...key, source),
        counter,
        drop,
      ]),
      byAddress,
      ...within.map((block) => rule(side, "node ports", [...atNode, ...block, ...lead(byNodePort)])),
    ];
  });
}

function isIn(address: Field, { ip, prefix }: Cidr): readonly Expression[] {
  const mask = Uint8Array.from({ length: address.bytes }, (_, i) => {
    const bits = Math.min(8, Math.max(0, prefix - 8 * i));
    return 0xff & ~(0xff >> bits);
  });
  return compare(masked(address, mask), "eq", ipBytes(firstOf({ ip, prefix })));
}

/** Sources that would not find back, in chains that see a connection's first packet on its way out. */
function sourceRules(table: Table): readonly Rule[] {
  const rule = rulesOf(table);
  const marked = masked(packetMark, new Uint8Array(Uint32Array.of(hiddenMark).buffer));
  const name = "postrouting";
  return [
    rule(name, "others", [...compare(marked, "neq", new Uint8Array(4)), ...markWith(hiddenMark, false), masquerade]),
    // It has the source that leads to the service's address, which may be none that the endpoint can answer to.
    rule(name, "the node", [
      ...isTranslated,
      ...compare(sourceKind, "eq", localAddress),
      ...compare(outputInterfaceName, "neq", ifnameBytes("lo")),
      masquerade,
    ]),
  ];
}

/** A bridge's part: replies between its pods have to come back through the node, which has translated the question. */
export const bridgeRuleset = (bridge: PolicedBridge): Ruleset => {
  const { table, name, hook, rules } = routedByNode(bridge, "services-route");
  return { table, sets: [], hooks: new Map(hook === undefined ? [] : [[name, hook]]), rules: rules() };
};

/** The chain of all services at such entrances whose endpoints are chosen so. */
export function choiceRules(table: Table, entrances: Entrances, choice: Choice): readonly Rule[] {
  const name = choiceName(entrances, choice);
  const { slots, isOwnList, isHidden, affinitySeconds } = choice;
  const rule = rulesOf(table);
  if (slots === 0)
    return isHidden
      ? [rule(name, "nobody here", [counter, drop])]
      : [rule(name, "nobody", [...is(upperProtocol, Upper.tcp), reset]), rule(name, "nobody", [rejectAsClosed])];
  const { family, endpoints, clients } = entrances;
  const key = entrance(entrances);
  const client = [...key, fields[family].source];
  const from = isOwnList ? ownListFrom : 0;
  const draw = randomBelow(slots, from);
  const lead = [lookUp(endpoints.name, 0, 0), leadTo(family, 0)];
  // Of a client that came while its choice was from the other list: that slot is not its any more.
  const ownList = masked(packetPriority, mark(ownListFrom));
  const isInList = compare(ownList, isOwnList ? "neq" : "eq", new Uint8Array(4));
  // nft cannot show a rule that looks up what it has looked up before, so the slot goes by the packet's priority.
  const kept = rule(name, "its slot", [
    ...isInList,
    ...loads(0, ...key, packetPriority),
    lookUp(endpoints.name, 0, 0),
    ...loads(clientAt, ...client, packetPriority),
    keepFor(clients.name, { key: clientAt, value: clientAt + registersOf(client) }, affinitySeconds),
    leadTo(family, 0),
  ]);
  const affinity = [
    rule(name, "none", [constant(mark(noSlot)), setPriority(0)]),
    rule(name, "as before", [...loads(0, ...client), lookUp(clients.name, 0, 0), setPriority(0)]),
    kept,
    rule(name, "its slot is gone", [
      ...loads(0, ...client),
      constant(mark(noSlot), registersOf(client)),
      forget(clients.name, { key: 0, value: registersOf(client) }),
    ]),
    rule(name, "another", [draw.load(0), setPriority(0)]),
    kept,
  ];
  return [
    ...(isHidden ? [rule(name, "hidden", markWith(hiddenMark, true))] : []),
    ...(affinitySeconds > 0 ? affinity : []),
    rule(name, "any", [...loads(0, ...key, draw), ...lead]),
    // The list has become shorter while the packet was here.
    rule(name, "the first", [...loads(0, ...key), constant(mark(from), registersOf(key)), ...lead]),
    rule(name, "nobody any more", [counter, drop]),
  ];
}
