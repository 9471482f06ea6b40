/** What may lie in a data directory for good; whatever else is there was left by a process that has ended. */
const lasting = [
  /^leases\.db(-wal|-shm)?$/,
  // Both are locked files, which stay when their holders end; a lock that is held by nobody holds nobody up.
  /^agent\.lock$/,
  // Set aside, never deleted: docs/ipam.md, "A damaged database".
  /^leases\.db\.damaged-/,
  /^(node-uid|nodes\.json|uplink\.json|policies\.state)$/,
  // Who had which address: docs/ipam.md.
  /^history\.jsonl(\.1)?$/,
];

/** @param names the entries of a data directory */
export const strayFiles = (names: readonly string[]): readonly string[] =>
  names
    .filter((name) => name !== "" && !lasting.some((pattern) => pattern.test(name)))
    .map((name) => `"${name}" was left in the data directory`);

/** Beside those that belong to the node each pod has one. */
export function strayLinks(names: readonly string[], fixed: readonly string[], pods: number): readonly string[] {
  const others = names.filter((name) => !fixed.includes(name));
  if (others.length === pods) return [];
  return [`${others.length} interfaces stand beside the node's own, wanted ${pods}: ${others.join(", ")}`];
}

/** What the packet rules know of pods. @param counts what there is and what is wanted of each kind */
export const strayElements = (
  counts: ReadonlyMap<string, readonly [found: number, wanted: number]>,
): readonly string[] =>
  [...counts]
    .filter(([, [found, wanted]]) => found !== wanted)
    .map(([what, [found, wanted]]) => `the packet rules know ${found} ${what} of pods, wanted ${wanted}`);
