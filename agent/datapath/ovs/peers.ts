import { formatCidr, formatIp, type Ip } from "../../../shared/net/ip.ts";
import { addressOnLink } from "../../cluster/cluster.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import type { NodeRoute } from "../node-route.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { Category } from "./pipeline/cookie.ts";
import { gatewayAddressOf, peerFlows, wayTo } from "./pipeline/mod.ts";
import { virtualMac } from "./pipeline/registers.ts";
import { isRefusal, type Part, type SwitchProgram } from "./switch-program.ts";

type Nodes = ReadonlyMap<string, ClusterNode>;

/** Of a node that the switch may have something of: nobody knows what. */
const unknown = "";

/** What the switch was told of other nodes, to tell it only of changes. */
export class PeerParts {
  readonly #told = new Map<string, string>();
  /** Why the switch does not take a node's flows, by the part's key. */
  readonly refused = new Map<string, string>();

  /**
   * Tells the switch what it does not know of these nodes yet, of each by itself: one whose flows are refused, such as
   * one with the address of another, costs the others nothing, and is told again the next time.
   * @returns whether there was anything to tell
   * @throws {CniError} 11, 102: the first refusal, once all are told
   */
  async tell(program: SwitchProgram, context: PipelineContext, nodes: Nodes): Promise<boolean> {
    const parts = [...this.#changed(context, nodes)];
    const outcomes = await Promise.allSettled(
      parts.map(([name, part]) => program.set(new Map([[partKey(name), part]]))),
    );
    const refusals = outcomes.flatMap((outcome, i) => {
      const name = parts[i]?.[0] ?? "";
      this.refused.delete(partKey(name));
      if (outcome.status === "fulfilled") return [];
      // Also of one that has gone: it is to be told of until the switch has heard.
      this.#told.set(name, unknown);
      if (isRefusal(outcome.reason)) this.refused.set(partKey(name), outcome.reason.message);
      return [outcome.reason as unknown];
    });
    if (refusals.length > 0) throw refusals[0];
    return parts.length > 0;
  }

  /** By the node's name, those that have gone first. All of them are taken for told. */
  #changed(context: PipelineContext, nodes: Nodes): ReadonlyMap<string, Part | undefined> {
    const parts = new Map<string, Part | undefined>();
    for (const name of this.#told.keys()) {
      if (nodes.has(name)) continue;
      this.#told.delete(name);
      parts.set(name, undefined);
    }
    for (const [name, node] of nodes) {
      const text = textOf(node);
      if (this.#told.get(name) === text) continue;
      this.#told.set(name, text);
      parts.set(name, { category: Category.node, flows: peerFlows(context, node) });
    }
    return parts;
  }

  /** The switch is to be told of everything again. */
  forget(): void {
    for (const name of this.#told.keys()) this.#told.set(name, unknown);
  }
}

const partKey = (name: string): string => `node/${name}`;

const textOf = ({ addresses, mac, subnets }: ClusterNode): string =>
  [addresses.map(formatIp), mac, subnets.map(formatCidr)].join(" ");

/** Where tunnels to other nodes' pods end. */
export const tunnelEnds = (context: PipelineContext, nodes: Nodes): Ip[] =>
  [...nodes.values()].flatMap((node) => {
    const ways = node.subnets.map((subnet) => wayTo(context, node, subnet));
    const way = ways.find((one) => one?.t === "tunnel");
    return way?.t === "tunnel" ? [way.remote] : [];
  });

/** How this node's own packets get to the pods of others. */
export const peerRoutes = (context: PipelineContext, nodes: Nodes): NodeRoute[] =>
  [...nodes.values()].flatMap((node) => node.subnets.flatMap((subnet) => routeTo(context, node, subnet) ?? []));

function routeTo(
  context: PipelineContext,
  node: ClusterNode,
  dst: ClusterNode["subnets"][number],
): NodeRoute | undefined {
  if (context.mode === "networkPolicyOnly") return undefined;
  const way = wayTo(context, node, dst);
  if (way === undefined) return undefined;
  // ARP for the other's gateway is answered by the switch; for IPv6 it is declared.
  const mac = dst.ip.family === 6 ? { mac: virtualMac } : {};
  if (way.t === "tunnel") return { dst, via: gatewayAddressOf(dst), by: "gateway", ...mac };
  const via = addressOnLink(context.nodeAddresses, node, dst.ip.family);
  // Behind a router: the underlay knows the way, or nobody does.
  return via === undefined ? undefined : { dst, via, by: "transport" };
}
