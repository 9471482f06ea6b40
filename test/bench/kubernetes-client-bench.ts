import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clientTable, measureClient } from "./kubernetes/measure-client.ts";

/** `npm run bench:kubernetes-client`: what it takes to know a large cluster, from a server that replays one. */
const scratch = mkdtempSync(join(tmpdir(), "pipette-bench-"));
try {
  const counts = { nodes: 5_000, pods: 100_000, networkpolicies: 75_000 };
  console.log(clientTable(await measureClient({ counts, events: 20_000, scratch })));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
