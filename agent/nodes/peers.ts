import type { Logger } from "../../shared/log.ts";
import type { Admission } from "./admissible.ts";
import { clashesAmong } from "./clashes.ts";
import type { ClusterNode } from "./node-registry.ts";
import { sameClaim } from "./node-text.ts";

type Nodes = ReadonlyMap<string, ClusterNode>;

/** Of many records that are left out the first say enough. */
const mostInLog = 10;

export interface Peers {
  /** In the order in which they became known. */
  readonly peers: Nodes;
  /** Why a record is left out, a sentence for each. */
  readonly refused: readonly string[];
}

/**
 * The other nodes, without those whose record no node may have here, and those that have what this one or an earlier one
 * has: flows for both would contradict each other, and a subnet around ours would draw our pods' packets away. Earlier is
 * who was known before and says the same still; then it goes by the order of the registry. So nobody loses his place to
 * a record that is made later, whatever it claims. A node without address or subnet is none yet.
 * @param before those that were peers until now, in their order
 */
export function peersOf(self: ClusterNode, nodes: Nodes, before: Nodes, wrongOf: Admission): Peers {
  const others = [...nodes.values()].filter(
    ({ name, addresses, subnets }) => name !== self.name && addresses.length > 0 && subnets.length > 0,
  );
  const wrong = new Map(others.map((node) => [node, wrongOf(node)]));
  const sound = inOrder(others, before).filter((node) => wrong.get(node) === undefined);
  const clashes = clashesAmong([self, ...sound]);
  const out = new Set(clashes.map(({ node }) => node));
  return {
    peers: new Map(sound.filter((node) => !out.has(node)).map((node) => [node.name, node])),
    refused: [
      ...[...wrong].flatMap(([node, is]) => (is === undefined ? [] : [leftOut(node, is)])),
      ...clashes.map(({ node, is }) => leftOut(node, `it has ${is}`)),
    ],
  };
}

function inOrder(nodes: readonly ClusterNode[], before: Nodes): readonly ClusterNode[] {
  const places = new Map([...before.values()].map((node, place) => [node.name, place]));
  const placed = nodes.map((node) => {
    const place = sameClaim(before.get(node.name), node) ? places.get(node.name) : undefined;
    return { node, place: place ?? before.size };
  });
  return placed.sort((a, b) => a.place - b.place).map(({ node }) => node);
}

const leftOut = ({ name }: ClusterNode, is: string): string => `node "${name}" is left out: ${is}`;

/** Says what has changed, and bounded. */
export class RefusalLog {
  #said = "";
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  readonly tell = (sentences: readonly string[]): void => {
    const text = sentences.join("\n");
    if (text === this.#said) return;
    this.#said = text;
    if (sentences.length === 0) this.#logger.info("no records of the registry are refused any more");
    else
      this.#logger.error("records of the registry are refused", {
        records: sentences.slice(0, mostInLog),
        of: sentences.length,
      });
  };
}
