import { counter, drop, type Expression, type Rule, type Table } from "../../protocols/netlink/mod.ts";

/** Makes a rule of one table. @param leadsTo chain that decides about what has passed `expressions` */
export type RuleMaker = (chain: string, comment: string, expressions: readonly Expression[], leadsTo?: string) => Rule;

export const rulesOf =
  (table: Table): RuleMaker =>
  (chain, comment, expressions, leadsTo) => ({
    table,
    chain,
    comment,
    expressions,
    ...(leadsTo === undefined ? {} : { leadsTo }),
  });

/** The last rule of a chain, which shows how much it has dropped. */
export const dropTheRest = (rule: RuleMaker, chain: string): Rule => rule(chain, "nothing else", [counter, drop]);

/** Numbers of protocols in IPv4's `protocol` and IPv6's `next header`. */
export const Upper = { icmp4: 1, igmp: 2, tcp: 6, udp: 17, icmp6: 58 } as const;
