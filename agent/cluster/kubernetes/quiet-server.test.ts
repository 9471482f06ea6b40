import { expect, test } from "vitest";
import { ApiClient, serviceAccountAccess, usualInformerTimes } from "../../../shared/kubernetes/mod.ts";
import { createLogger } from "../../../shared/log.ts";
import { ScriptedApiServer } from "../../../test/fakes/kubernetes/scripted-api-server.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { KubernetesRegistry } from "./kubernetes-registry.ts";

test("where nothing happens at all the server says nothing, not even a bookmark, and no watch is taken for dead", async () => {
  await using server = await ScriptedApiServer.start();
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  const log: string[] = [];
  const logger = createLogger("info", (line) => void log.push(line));
  const faster = 60;
  const times = {
    ...usualInformerTimes,
    watchMs: usualInformerTimes.watchMs / faster,
    silenceMs: usualInformerTimes.silenceMs / faster,
    retryFirstMs: 5,
  };
  const registry = new KubernetesRegistry({
    api: new ApiClient(serviceAccountAccess({ server: server.url }, {}, "nodes.registry.server")),
    logger,
    times,
  });
  await using _ = registry.follow();
  await eventually(() => server.asked.filter((line) => line.includes("watch=true")).length === 3, "the third watch");
  expect(log).toEqual([]);
  expect(server.bookmarks).toBe(0);
});
