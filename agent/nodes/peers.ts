import type { Logger } from "../../shared/log.ts";
import { clashesAmong } from "./clashes.ts";
import type { ClusterNode } from "./node-registry.ts";

/** Of many clashes the first say enough. */
const mostInLog = 10;

/**
 * The other nodes, without those that have what this one or a better one has: flows for both would contradict each
 * other, and a subnet around ours would draw our pods' packets away. Of two nodes the one with the smaller subnet is
 * the better one, so that a record that claims too much costs its own node only; then it goes by name. A node without
 * address or subnet is none yet.
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
  others.sort((a, b) => hostBits(a) - hostBits(b) || (a.name < b.name ? -1 : 1));
  const clashes = clashesAmong([self, ...others]);
  const out = new Set(clashes.map(({ node }) => node));
  excluded(clashes.map(({ node, is }) => `node "${node.name}" is left out: it has ${is}`));
  return new Map(others.filter((node) => !out.has(node)).map((node) => [node.name, node]));
}

/** Of its largest subnet of the first family. */
const hostBits = ({ subnets }: ClusterNode): number =>
  Math.max(...subnets.map(({ ip, prefix }) => (ip.family === 4 ? 32 : 64) - prefix));

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
