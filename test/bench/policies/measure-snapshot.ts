import { statSync } from "node:fs";
import { join } from "node:path";
import { readSnapshot, writeSnapshot } from "../../../controller/snapshot.ts";
import { namespaces, networkPolicies, pods } from "../../../shared/policy/mod.ts";
import { scratchDir } from "../../support/scratch-dir.ts";
import type { Workload } from "./workloads.ts";

export interface SnapshotFigures {
  readonly name: string;
  readonly pods: number;
  readonly policies: number;
  readonly bytes: number;
  readonly writeMs: number;
  readonly readMs: number;
  /** Of the whole process, at the most. */
  readonly peakBytes: number;
}

/** What a controller writes to its disk, and what the next one reads. */
export async function measureSnapshot(workload: Workload): Promise<SnapshotFigures> {
  using directory = scratchDir();
  const file = join(directory.path, "snapshot");
  const inputs = {
    namespaces: [...workload.namespaces()].flatMap((object) => namespaces.project(object) ?? []),
    pods: [...workload.pods()].flatMap((object) => pods.project(object) ?? []),
    policies: [...workload.policies()].flatMap((object) => networkPolicies.project(object) ?? []),
  };
  const beganMs = performance.now();
  await writeSnapshot(file, inputs);
  const writtenMs = performance.now();
  const read = await readSnapshot(file);
  const readMs = performance.now() - writtenMs;
  const counts = [read?.pods, read?.policies].map((all) => [...(all ?? [])].length);
  return {
    ...{ name: workload.name, pods: counts[0] ?? 0, policies: counts[1] ?? 0, bytes: statSync(file).size },
    ...{ writeMs: writtenMs - beganMs, readMs, peakBytes: process.resourceUsage().maxRSS * 1024 },
  };
}

export const snapshotTable = ({ name, pods, policies, bytes, writeMs, readMs, peakBytes }: SnapshotFigures): string =>
  [
    "| snapshot of | pods | policies | size | written in | read in | memory, most |",
    "|---|---|---|---|---|---|---|",
    [
      `| ${name}`,
      ...[pods, policies, `${(bytes / 1e6).toFixed(0)} MB`],
      ...[`${(writeMs / 1000).toFixed(2)} s`, `${(readMs / 1000).toFixed(2)} s`],
      `${Math.round(peakBytes / 1e6)} MB |`,
    ].join(" | "),
  ].join("\n");
