import type { Logger } from "../../shared/log.ts";
import { clashesAmong } from "./clashes.ts";
import type { ClusterNode } from "./node-registry.ts";

/** Of many clashes the first say enough. */
const mostInLog = 10;

/**
 * The other nodes, without those that have what this one or an earlier one by name has: flows for both would contradict
 * each other, and a subnet around ours would draw our pods' packets away. A node without address or subnet is none yet.
 * @param excluded hears of them, in sentences
 */
export function peersOf(
  self: ClusterNode,
  nodes: ReadonlyMap<string, ClusterNode>,
  excluded: (sentences: readonly string[]) => void,
): ReadonlyMap<string, ClusterNode> {
  const others = [...nodes.values()].filter(
    ({ name, addresses, subnets }) => name !== self.name && addresses.length > 0 && subnets.length > 0,
  );
  others.sort((a, b) => (a.name < b.name ? -1 : 1));
  const clashes = clashesAmong([self, ...others]);
  const out = new Set(clashes.map(({ node }) => node));
  excluded(clashes.map(({ node, is }) => `node "${node.name}" is left out: it has ${is}`));
  return new Map(others.filter((node) => !out.has(node)).map((node) => [node.name, node]));
}

/** Says what has changed, and bounded. */
export class ClashLog {
  #said = "";
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  readonly tell = (sentences: readonly string[]): void => {
    const text = sentences.join("\n");
    if (text === this.#said) return;
    this.#said = text;
    if (sentences.length === 0) this.#logger.info("no nodes are left out any more");
    else
      this.#logger.error("nodes contradict each other", { nodes: sentences.slice(0, mostInLog), of: sentences.length });
  };
}
