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

export const nodeOn = (link: Link, number: number): readonly [string, string] => [
  `172.30.${linkNumber[link]}.${number}`,
  `fd30:${link}::${number.toString(16)}`,
];

/** Locally administered, and the same at every start: what others have learnt stays right. */
export const nodeMac = (number: number): string => `02:00:ac:1e:00:${number.toString(16).padStart(2, "0")}`;

/** A host beyond the nodes, which has a route to them and none to pods. */
export const external = ["198.51.100.1", "2001:db8:51::1"] as const;
