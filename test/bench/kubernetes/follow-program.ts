import { readFileSync } from "node:fs";
import { nodes } from "../../../agent/cluster/kubernetes/node-resource.ts";
import {
  ApiClient,
  type ApiObject,
  Informer,
  listIn,
  mapIn,
  type Resource,
  textIn,
} from "../../../shared/kubernetes/mod.ts";
import { createLogger } from "../../../shared/log.ts";
import { podFields, policyFields } from "../../kubernetes/client/resources.ts";

/**
 * A program: follows one kind of the replayed server in an own process, and prints what that took as JSON.
 *
 *     bun follow-program.ts URL CA KIND ENCODING OBJECTS EVENTS
 */
const [server = "", ca = "", kind = "", encoding = "", objectsText = "0", eventsText = "0"] = process.argv.slice(2);

/** What a controller of policies would keep. */
const pods: Resource<object> = {
  version: "v1",
  plural: "pods",
  fields: podFields,
  project: (object) => ({
    labels: mapIn(mapIn(object, "metadata"), "labels"),
    node: textIn(mapIn(object, "spec"), "nodeName"),
    phase: textIn(mapIn(object, "status"), "phase"),
    ips: listIn(mapIn(object, "status"), "podIPs").map((ip) => (ip as ApiObject)["ip"]),
  }),
};
const policies: Resource<object> = {
  group: "networking.k8s.io",
  version: "v1",
  plural: "networkpolicies",
  fields: policyFields,
  project: (object) => mapIn(object, "spec"),
};
const { same: _, ...eachNode } = nodes;
const kinds: Readonly<Record<string, Resource<object>>> = { pods, networkpolicies: policies, nodes: eachNode };

const { fields, ...json } = kinds[kind] ?? pods;
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
