/** Bounds of a support bundle. */
export const limits = {
  /** Of one item, in characters of a text and bytes of a document: the last hours of an agent's log. */
  itemBytes: 4 * 1024 * 1024,
  /** Of all before they are compressed: a hundred nodes fit, and it can be sent. */
  bundleBytes: 128 * 1024 * 1024,
  /** Beyond the end of a text that is kept, for a secret that is cut in two to be seen whole. */
  overlapChars: 64 * 1024,
  /** Lines of an agent's pod: some hours of one that is in trouble. */
  logLines: 10_000,
  itemMs: 15_000,
  /** An agent's doctor looks several times, and longer on a busy node. */
  findingsMs: 30_000,
  /** Items at a time: each is a question to an agent, or a program of the node. */
  atATime: 4,
  /** The same of a cluster: most of the time is waiting for nodes that are away. */
  atATimeOfCluster: 16,
} as const;
