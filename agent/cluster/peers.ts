import type { Logger } from "../../shared/log.ts";
import type { Admission } from "./admissible.ts";
import { conflictsAmong } from "./clashes.ts";
import type { ClusterNode } from "./node-registry.ts";

type Nodes = ReadonlyMap<string, ClusterNode>;

/** Of many records that are left out the first say enough. */
const maxInLog = 10;

export interface Peers {
  readonly peers: Nodes;
  /** Why a record is left out, a sentence for each. */
  readonly refused: readonly string[];
}

/**
 * The other nodes, without those whose record no node may have here, and those that have what this one or another one has:
 * flows for both would contradict each other, and a subnet around ours would draw our pods' packets away. What a peer had
 * before stays its own; of what is new the registry's order decides. So nobody loses his place to a record that is made
 * later, whatever it claims. A node without address or subnet is none yet.
 * @param before those that were peers until now
 */
export function peersOf(self: ClusterNode, nodes: Nodes, before: Nodes, wrongOf: Admission): Peers {
  const others = [...nodes.values()].filter(
    ({ name, addresses, subnets }) => name !== self.name && addresses.length > 0 && subnets.length > 0,
  );
  const wrong = new Map(others.map((node) => [node, wrongOf(node)]));
  const sound = others.filter((node) => wrong.get(node) === undefined);
  const clashes = conflictsAmong([self, ...sound], new Map(before).set(self.name, self));
  const out = new Set(clashes.map(({ node }) => node));
  return {
    peers: new Map(sound.filter((node) => !out.has(node)).map((node) => [node.name, node])),
    refused: [
      ...[...wrong].flatMap(([node, is]) => (is === undefined ? [] : [leftOut(node, is)])),
      ...clashes.map(({ node, is }) => leftOut(node, `it has ${is}`)),
    ],
  };
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
        records: sentences.slice(0, maxInLog),
        of: sentences.length,
      });
  };
}
