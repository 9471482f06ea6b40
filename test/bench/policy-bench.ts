import { addTable, measureAdds } from "./policies/measure-adds.ts";
import { measurePolicies, type PolicyFigures, policyTable } from "./policies/measure-policies.ts";
import { measureSnapshot, snapshotTable } from "./policies/measure-snapshot.ts";
import { measureWatches, watchTable } from "./policies/measure-watches.ts";
import {
  acrossNamespaces,
  largeNamespaces,
  oneNamespace,
  policyPerPod,
  smallNamespaces,
} from "./policies/workloads.ts";

/**
 * `npm run bench:policy`: what the controller's computation takes for large clusters, each in a process of its own, which
 * this program starts with the number of the cluster; how soon a thousand nodes hear of a change; and one part alone with
 * its name: `-- snapshot`, what a controller keeps for its restart, and `-- adds`, what policies add to an ADD (as root).
 */
const workloads = [
  smallNamespaces(25_000),
  largeNamespaces(100),
  oneNamespace(10_000),
  policyPerPod(10_000),
  acrossNamespaces(1_000),
];

const own = workloads[Number(process.argv[2] ?? -1)];
if (own !== undefined) {
  console.log(JSON.stringify(measurePolicies(own, 30_000)));
  process.exit(0);
}
const parts: Readonly<Record<string, () => Promise<string>>> = {
  adds: async () => addTable(await measureAdds(400, 4)),
  snapshot: async () => snapshotTable(await measureSnapshot(smallNamespaces(25_000))),
};
const part = parts[process.argv[2] ?? ""];
if (part !== undefined) {
  console.log(await part());
  process.exit(0);
}
const figures: PolicyFigures[] = [];
for (const i of workloads.keys()) {
  const child = Bun.spawn([process.execPath, import.meta.path, String(i)], { stdout: "pipe", stderr: "inherit" });
  figures.push(JSON.parse(await new Response(child.stdout).text()) as PolicyFigures);
}
console.log(`${policyTable(figures)}\n`);
console.log(watchTable(await measureWatches(1_000, 200, 10, 1_000)));
