import { formatCidr } from "../../../../shared/net/ip.ts";
import type { PodRule, RulePorts } from "../../policies.ts";

/** Of peers, as many as a person reads. */
const maxBlocks = 5;

/** What a rule lets pass, in words: policies do not name their rules. */
export function ruleText({ direction, peers, ports }: PodRule): string {
  const to = direction === "egress" ? "to" : "from";
  const what = ports === undefined ? "every port" : ports.length === 0 ? "no port" : ports.map(portText).join(", ");
  if (peers === undefined) return `${what} ${to} anybody`;
  const pods = peers.sets.reduce((sum, { ips }) => sum + ips.length, 0);
  const blocks = peers.blocks.map(({ cidr }) => formatCidr(cidr));
  const whom = [
    ...(peers.sets.length === 0 ? [] : [`pods that its selectors choose (${pods} address${pods === 1 ? "" : "es"})`]),
    ...blocks.slice(0, maxBlocks),
    ...(blocks.length > maxBlocks ? [`${blocks.length - maxBlocks} more blocks`] : []),
  ];
  return `${what} ${to} ${whom.length === 0 ? "nobody" : whom.join(", ")}`;
}

function portText({ protocol, first, last }: RulePorts): string {
  if (first === undefined) return `${protocol}`;
  return `${protocol} ${first}${last === undefined || last === first ? "" : `-${last}`}`;
}
