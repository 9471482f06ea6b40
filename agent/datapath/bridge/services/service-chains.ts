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
  isElement,
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
  payload,
  type Rule,
  randomBelow,
  rejectAsClosed,
  reset,
  sourceKind,
  type Table,
  upperProtocol,
} from "../../../protocols/netlink/mod.ts";
import type { Ruleset } from "../../linux/rule-keeper.ts";
import { destination6, is, rulesOf, source4, source6, Upper, upperDestinationPort } from "../frame-fields.ts";
import { ifnameBytes, noRedirects, type PolicedBridge, routedByNode } from "../policies/node-chains.ts";
import { type Choice, mannerOf } from "./service-elements.ts";
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
const fields: Readonly<Record<Family, { source: Field; destination: Field; words: number }>> = {
  4: { source: source4, destination: destination4, words: 1 },
  6: { source: source6, destination: destination6, words: 4 },
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
const first = new Uint8Array(4);

/** Puts what an entrance's map has for the packet into the registers from 0 on. */
const enter = ({ family, by, map }: Entrances): readonly Expression[] => [
  ...loads(0, ...(by === "address" ? [fields[family].destination] : []), upperProtocol, upperDestinationPort),
  lookUp(map.name, 0, 0),
];

/** Chains that every packet of new connections meets, whatever services there are. */
export function serviceRuleset(
  table: Table,
  sets: readonly ServiceSets[],
  bridges: readonly PolicedBridge[],
  options: ServiceOptions,
): Ruleset {
  const rule = rulesOf(table);
  const isAt = (field: Field, name: string): readonly Expression[] => compare(field, "eq", ifnameBytes(name));
  const fromPods = bridges.map(({ name }) => rule("prerouting", "pods", isAt(inputInterfaceName, name), "inside"));
  const whole = [
    rule("prerouting", "others", [], "outside"),
    rule("output", "the node", [], "inside"),
    ...sideRules(table, "outside", sets, options),
    ...sourceRules(table),
  ];
  const hairpins = bridges.flatMap(({ name }) => {
    const back = [...isTranslated, ...isAt(inputInterfaceName, name), ...isAt(outputInterfaceName, name)];
    return sets.flatMap(({ hairpins: { name: pairs } }, i) => {
      const family = i === 0 ? 4 : 6;
      const { source, destination } = fields[family];
      const own = [...packetsOf[family], ...back];
      return [
        rule("postrouting", "pods", [...own, ...loads(0, source, source), keepFor(pairs, { key: 0 }, hairpinSeconds)]),
        rule("postrouting", "a pod and itself", [...own, ...among(pairs, source, destination), masquerade]),
      ];
    });
  });
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
  return sets.flatMap(({ entrances, bounded, sources }) => {
    const own = entrances.filter((each) => each.side === side);
    const lead = (by: Entrances["by"], family: Family): readonly Expression[] =>
      own.flatMap((each) =>
        each.by === by ? [...enter(each), jumpByRegisters(each.choices.name, fields[family].words + 2)] : [],
      );
    const family = own[0]?.family ?? 4;
    const { source, destination, words: _ } = fields[family];
    const key = [destination, upperProtocol, upperDestinationPort];
    const packets = packetsOf[family];
    const byAddress = rule(side, "addresses of services", [...packets, ...lead("address", family)]);
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
      ...within.map((block) => rule(side, "node ports", [...atNode, ...block, ...lead("nodePort", family)])),
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

export const choiceName = ({ map }: Entrances, choice: Choice): string =>
  `${map.name}-${choice.slots}-${mannerOf(choice)}`;

/** The chain of all services at such entrances whose endpoints are chosen so. */
export function choiceRules(
  table: Table,
  { endpoints, members, clients }: ServiceSets,
  entrances: Entrances,
  choice: Choice,
): readonly Rule[] {
  const name = choiceName(entrances, choice);
  const { slots, isHidden, affinitySeconds } = choice;
  const rule = rulesOf(table);
  if (slots === 0)
    return isHidden
      ? [rule(name, "nobody here", [counter, drop])]
      : [rule(name, "nobody", [...is(upperProtocol, Upper.tcp), reset]), rule(name, "nobody", [rejectAsClosed])];
  const { family } = entrances;
  const { source, words } = fields[family];
  // Behind the list's name, and behind that the client's address.
  const [behind, end] = [words + 2, 2 * words + 2];
  const client = loads(behind, source);
  const list = enter(entrances);
  const draw = [...list, randomBelow(slots).load(behind)];
  const remembered = rule(name, "the same as before", [
    ...list,
    ...client,
    lookUp(clients.name, 0, behind),
    isElement(members.name, 0),
    ...client,
    lookUp(clients.name, 0, end),
    keepFor(clients.name, { key: 0, value: end }, affinitySeconds),
    leadTo(family, end),
  ]);
  const forgotten = rule(name, "that is gone", [...list, ...client, forget(clients.name, { key: 0, value: 0 })]);
  const drawnAndKept = rule(name, "any", [
    ...draw,
    lookUp(endpoints.name, 0, end),
    ...client,
    keepFor(clients.name, { key: 0, value: end }, affinitySeconds),
    leadTo(family, end),
  ]);
  return [
    ...(isHidden ? [rule(name, "hidden", markWith(hiddenMark, true))] : []),
    ...(affinitySeconds > 0 ? [remembered, forgotten, drawnAndKept] : []),
    rule(name, "any", [...draw, lookUp(endpoints.name, 0, 0), leadTo(family, 0)]),
    // The list has become shorter while the packet was here.
    rule(name, "the first", [...list, constant(first, behind), lookUp(endpoints.name, 0, 0), leadTo(family, 0)]),
    rule(name, "nobody any more", [counter, drop]),
  ];
}
