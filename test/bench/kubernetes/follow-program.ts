import { readFileSync } from "node:fs";
import { nodes } from "../../../agent/cluster/kubernetes/node-resource.ts";
import { ApiClient, Informer, type Resource } from "../../../shared/kubernetes/mod.ts";
import { createLogger } from "../../../shared/log.ts";
import { networkPolicies, pods } from "../../../shared/policy/mod.ts";

/**
 * A program: follows one kind of the replayed server in an own process, and prints what that took as JSON.
 *
 *     bun follow-program.ts URL CA KIND ENCODING OBJECTS EVENTS
 */
const [server = "", ca = "", kind = "", encoding = "", objectsText = "0", eventsText = "0"] = process.argv.slice(2);

// Each change of the server is counted, also one that nobody asks for.
const each = <T extends object>({ same: _, ...resource }: Resource<T>): Resource<object> => resource;
const kinds: Readonly<Record<string, Resource<object>>> = {
  pods: each(pods),
  networkpolicies: each(networkPolicies),
  nodes: each(nodes),
};

const { fields, ...json } = kinds[kind] ?? each(pods);
const resource = encoding === "json" || fields === undefined ? json : { ...json, fields };
const access = {
  server,
  tls: () => Promise.resolve({ ca: readFileSync(ca, "utf8") }),
  credentials: { authorization: () => Promise.resolve(undefined), renew: () => Promise.resolve(false) },
};
let peakBytes = 0;
const look = (): void => {
  peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
};
setInterval(look, 10);
const logger = createLogger("info", (line) => console.error(line));
await using client = new ApiClient(access);
const started = performance.now();
const informer = new Informer(client, resource, { logger });
informer.subscribe({
  changed: () => undefined,
  stateChanged: (state) => {
    if (state.t === "failing") console.error(state.error.message);
  },
});
await informer.synced;
const listMs = performance.now() - started;
const { user, system } = process.cpuUsage();
look();
let heard = 0;
const all = Promise.withResolvers<void>();
const begun = performance.now();
informer.subscribe({
  changed: (changes) => {
    for (const { t } of changes) if (t === "updated") heard++;
    if (heard >= Number(eventsText)) all.resolve();
  },
});
if (Number(eventsText) > 0) await all.promise;
const watchMs = performance.now() - begun;
Bun.gc(true);
await Bun.sleep(50);
Bun.gc(true);
const figures = {
  kind,
  encoding,
  objects: informer.objects.size,
  wanted: Number(objectsText),
  listMs,
  listCpuMs: (user + system) / 1000,
  events: heard,
  watchMs,
  peakBytes,
  keptBytes: process.memoryUsage.rss(),
};
console.log(JSON.stringify(figures));
process.exit(0);
