import { expect, test } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import { eventually } from "../../../test/support/agent-process.ts";
import { ApiClient } from "./api-client.ts";
import { KubernetesRegistry } from "./kubernetes-registry.ts";
import { usualTimes } from "./node-watch.ts";
import { ScriptedApiServer } from "./scripted-api-server.ts";

test("where nothing happens at all the server says nothing, not even a bookmark, and no watch is taken for dead", async () => {
  await using server = await ScriptedApiServer.start();
  server.put("a", ["10.1.0.0/24"], "192.0.2.1");
  const log: string[] = [];
  const logger = createLogger("info", (line) => void log.push(line));
  const faster = 60;
  const times = {
    ...usualTimes,
    watchMs: usualTimes.watchMs / faster,
    silenceMs: usualTimes.silenceMs / faster,
    retryFirstMs: 5,
  };
  const registry = new KubernetesRegistry({ api: new ApiClient({ server: server.url }, {}), logger, times });
  await using _ = registry.follow();
  await eventually(() => server.asked.filter((line) => line.includes("watch=true")).length === 3, "the third watch");
  expect(log).toEqual([]);
  expect(server.bookmarks).toBe(0);
});
