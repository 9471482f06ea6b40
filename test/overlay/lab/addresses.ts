/** Every address of the lab, in both families. Nodes are numbered from 1. */

/** The links that nodes stand on: `a` and `b`, with a router between. */
export type Link = "a" | "b";
export const links: readonly Link[] = ["a", "b"];

const linkNumber = { a: 0, b: 1 } as const;

/** Of the router that both links lead to. With the prefix length: 24 and 64. */
export const routerOn = (link: Link): readonly [string, string] => [
  `172.30.${linkNumber[link]}.254`,
  `fd30:${link}::fe`,
];

/** The same at every start, as all of the lab's. */
export const routerMac = (link: Link): string => `02:00:ac:1e:ff:0${linkNumber[link]}`;

/** The members of the registry stand at the router, on the first link. */
export const etcdMembers = ["172.30.0.251", "172.30.0.252", "172.30.0.253"] as const;

export const nodeOn = (link: Link, number: number): readonly [string, string] => [
  `172.30.${linkNumber[link]}.${number}`,
  `fd30:${link}::${number.toString(16)}`,
];

/** Locally administered, and the same at every start: what others have learnt stays right. */
export const nodeMac = (number: number): string => `02:00:ac:1e:00:${number.toString(16).padStart(2, "0")}`;

/** A host beyond the nodes, which has a route to them and none to pods. */
export const external = ["198.51.100.1", "2001:db8:51::1"] as const;

/** The pods' network: nodes get a /24 and a /64 each. */
export const clusterNetworks = [
  { cidr: "10.10.0.0/16", hostBits: 8 },
  { cidr: "fd10::/48", hostBits: 64 },
] as const;

/** Whether an address is in the pods' network. */
export const isOfPods = (address: string): boolean => address.startsWith("10.10.") || address.startsWith("fd10:");
