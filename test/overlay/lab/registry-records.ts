import { etcdMembers } from "./addresses.ts";
import type { Lab } from "./lab.ts";

/** A node's record as whoever can write the registry may put it there, without a claim and without a look at others. */
export interface PutRecord {
  readonly addresses: readonly string[];
  readonly subnets: readonly string[];
  readonly mac?: string;
}

const endpoint = `http://${etcdMembers[0]}:2379`;
const prefix = "/pipette/v1";

/** Runs etcdctl between the nodes, with a transaction or keys on its standard input where it reads that. */
export function etcdctl(lab: Lab, words: readonly string[], stdin = ""): Promise<string> {
  const command = ["etcdctl", "--endpoints", endpoint, ...words];
  return lab.underlay.namespace.start(command, stdin).ended.then(({ status, stdout, stderr }) => {
    if (status === 0) return stdout;
    throw new Error(`Cannot run etcdctl ${words[0]}: ${(stderr || stdout).trim()}`);
  });
}

/** All of them at one revision, by the nodes' names. */
export async function putRecords(lab: Lab, records: Readonly<Record<string, PutRecord>>): Promise<void> {
  const puts = Object.entries(records).map(
    ([name, record]) =>
      `put ${prefix}/nodes/${name} ${JSON.stringify(JSON.stringify({ uid: `uid-${name}`, ...record }))}`,
  );
  await etcdctl(lab, ["txn"], `\n${puts.join("\n")}\n\n\n`);
}

export async function deleteRecords(lab: Lab, names: Iterable<string>): Promise<void> {
  const deletions = [...names].map((name) => `del ${prefix}/nodes/${name}`);
  await etcdctl(lab, ["txn"], `\n${deletions.join("\n")}\n\n\n`);
}
