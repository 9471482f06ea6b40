import { measurePolicies, type PolicyFigures, policyTable } from "./policies/measure-policies.ts";
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
 * this program starts with the number of the cluster; and how soon a thousand nodes hear of a change.
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
const figures: PolicyFigures[] = [];
for (const i of workloads.keys()) {
  const child = Bun.spawn([process.execPath, import.meta.path, String(i)], { stdout: "pipe", stderr: "inherit" });
  figures.push(JSON.parse(await new Response(child.stdout).text()) as PolicyFigures);
}
console.log(`${policyTable(figures)}\n`);
console.log(watchTable(await measureWatches(1_000, 200, 10, 1_000)));
