import type { Hex } from "../parse.ts";
import { virtualMac, type World } from "../world.ts";
import type { Draw } from "./draw.ts";

/** A value and what it is in words. */
export interface Named {
  readonly words: string;
  readonly hex: Hex;
}

/** Everybody's addresses, and those of nobody, that frames speak of. */
export interface Vocabulary {
  readonly ownMac: Named;
  readonly gatewayMac: Named;
  readonly macs: readonly Named[];
  readonly own: Readonly<Record<4 | 6, Named>>;
  readonly ownLinkLocal: Named;
  readonly addresses: Readonly<Record<4 | 6, readonly Named[]>>;
  /** Destinations of frames that nothing is wrong with, each with the MAC that they go to. */
  readonly usual: Readonly<Record<4 | 6, readonly { readonly to: Named; readonly mac: Named }[]>>;
}

const named = (words: string, hex: Hex): Named => ({ words, hex });
const familyOf = ({ hex }: Named): 4 | 6 => (hex.length === 8 ? 4 : 6);
const v6 = (head: string, tail: string): Hex => head + "0".repeat(32 - head.length - tail.length) + tail;

const fixedMacs: readonly Named[] = [
  named("virtual MAC", virtualMac),
  named("broadcast", "ffffffffffff"),
  named("IPv4 group", "01005e0000fb"),
  named("all nodes", "333300000001"),
  named("all routers", "333300000002"),
  named("BPDUs", "0180c2000000"),
  named("pause frames", "0180c2000001"),
  named("LLDP", "0180c200000e"),
  named("PVST", "01000ccccccd"),
  named("nobody's MAC", "02000000be0f"),
  named("no MAC", "000000000000"),
];

const fixedAddresses: readonly Named[] = [
  named("no address", "00000000"),
  named("localhost", "7f000001"),
  named("127.1.2.3", "7f010203"),
  named("broadcast", "ffffffff"),
  named("all hosts", "e0000001"),
  named("mDNS", "e00000fb"),
  named("a group", "ef010203"),
  named("metadata", "a9fea9fe"),
  named("link-local", "a9fe00fd"),
  named("a service", "0a60000a"),
  named("TEST-NET", "c0000207"),
  named("reserved", "f0000001"),
  named("::", v6("", "")),
  named("::1", v6("", "1")),
  named("::ffff:127.0.0.1", v6("", "ffff7f000001")),
  named("all nodes", v6("ff02", "1")),
  named("all routers", v6("ff02", "2")),
  named("MLD routers", v6("ff02", "16")),
  named("all DHCPv6", v6("ff02", "10002")),
  named("a site's group", v6("ff05", "10003")),
  named("link-local of nobody", v6("fe80", "bad")),
  named("a service", v6("fd96", "a")),
  named("documentation", v6("20010db8", "7")),
];

export function vocabularyOf(world: World): Vocabulary {
  const [own] = world.pods;
  const [node] = world.nodes;
  const [v4, six] = [4, 6].map((family) => own.addresses.find((hex) => hex.length === (family === 4 ? 8 : 32)));
  const services = world.services.map(({ name, address }) => named(`service ${name}`, address));
  const macs = [
    ...world.pods.slice(1).map((pod) => named(`MAC of ${pod.node}/${pod.name}`, pod.mac)),
    ...world.nodes.flatMap(({ name, mac, gateway }) => [
      named(`MAC of ${name}'s gateway`, gateway.mac),
      named(`MAC of ${name}`, mac),
    ]),
    ...world.others.flatMap(({ mac }) => (mac === undefined ? [] : [named("MAC of the router", mac)])),
    ...fixedMacs,
  ];
  const somebody = [
    ...world.pods
      .slice(1)
      .flatMap((pod) => [...pod.addresses, pod.linkLocal].map((hex) => named(`${pod.node}/${pod.name}`, hex))),
    ...world.nodes.flatMap(({ name, addresses, gateway }) => [
      ...addresses.map((hex) => named(name, hex)),
      ...[...gateway.addresses, gateway.linkLocal].map((hex) => named(`${name}'s gateway`, hex)),
    ]),
    ...world.external.map((hex) => named("outside", hex)),
    ...world.others.map(({ address }) => named("the link's router", address)),
    ...world.clusterNetworks.map(({ digits, family }) =>
      named("a node that is none", digits + (family === 4 ? "4d4d" : "4d".padStart(32 - digits.length, "0"))),
    ),
    ...world.nodes.flatMap(({ name, subnets }) =>
      subnets
        .filter(({ family }) => family === 4)
        .map(({ digits }) => named(`${name}'s pods' broadcast`, digits.padEnd(8, "f"))),
    ),
    ...solicited(world),
    ...services,
  ];
  const ownMac = named("own MAC", own.mac);
  const gatewayMac = named("gateway's MAC", node.gateway.mac);
  const usual = [
    ...world.pods.slice(1).flatMap((pod) =>
      pod.addresses.map((hex) => {
        const isNear = pod.node === own.node && world.mode !== "networkPolicyOnly";
        const mac = isNear ? named(`MAC of ${pod.name}`, pod.mac) : gatewayMac;
        return { to: named(`${pod.node}/${pod.name}`, hex), mac };
      }),
    ),
    ...[...node.gateway.addresses, ...world.nodes.flatMap(({ addresses }) => addresses), ...world.external].map(
      (hex) => ({
        to: named("node or outside", hex),
        mac: gatewayMac,
      }),
    ),
    ...services.map((to) => ({ to, mac: gatewayMac })),
  ];
  const all = [...somebody, ...fixedAddresses];
  return {
    ownMac,
    gatewayMac,
    macs,
    own: { 4: named("own", v4 ?? "0a630001"), 6: named("own", six ?? own.linkLocal) },
    ownLinkLocal: named("own link-local", own.linkLocal),
    addresses: { 4: all.filter((one) => familyOf(one) === 4), 6: all.filter((one) => familyOf(one) === 6) },
    usual: {
      4: usual.filter(({ to }) => familyOf(to) === 4),
      6: usual.filter(({ to }) => familyOf(to) === 6),
    },
  };
}

/** The groups under which others are asked for. */
const solicited = (world: World): readonly Named[] =>
  world.pods
    .slice(1)
    .flatMap(({ name, addresses }) =>
      addresses
        .filter((hex) => hex.length === 32)
        .map((hex) => named(`who asks for ${name}`, v6("ff02", `1ff${hex.slice(-6)}`))),
    );

/** A destination, or somebody whom a frame is about. Of those that nobody has there are many. */
export function anyAddress(draw: Draw, { addresses }: Vocabulary, world: World, family: 4 | 6): Named {
  const known = world.nodes.flatMap(({ subnets }) => subnets.filter((one) => one.family === family));
  if (known.length > 0 && draw.chance(15)) {
    const { digits } = draw.pick(known);
    const length = family === 4 ? 8 : 32;
    const host = Array.from({ length: length - digits.length }, () => draw.below(16).toString(16)).join("");
    return named("nobody in pods' subnet", digits + host);
  }
  return draw.pick(addresses[family]);
}
