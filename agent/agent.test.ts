import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLogger } from "../shared/log.ts";
import { openSystem } from "../shared/server/open-system.ts";
import { DataPathInMemory, partsInMemory } from "../test/fakes/parts-in-memory.ts";
import { ServiceProxyInMemory } from "../test/fakes/service-proxy.ts";
import { scratchDir } from "../test/support/scratch-dir.ts";
import { Agent } from "./agent.ts";
import type { DataPathName, ServicesConfig } from "./config/agent-config.ts";

let scratch: ReturnType<typeof scratchDir>;
let section: ServicesConfig;
beforeEach(async () => {
  scratch = scratchDir();
  const file = join(scratch.path, "services.yaml");
  await Bun.write(
    file,
    "services: [{ name: x/web, clusterIp: 10.96.0.1, protocol: tcp, port: 80, endpoints: [{ ip: 10.9.0.7, port: 8080 }] }]",
  );
  section = { from: "file", file, cidrs: [], proxyAll: true, nodePortAddresses: [] };
});
afterEach(() => scratch[Symbol.dispose]());

async function start(dataPath: DataPathName, services: ServicesConfig | undefined, proxy?: ServiceProxyInMemory) {
  using parts = await partsInMemory(dataPath);
  const place = { dataDir: scratch.path, socket: join(scratch.path, "agent.sock") };
  const config = { ...parts.config, ...place, ...(services === undefined ? {} : { services }) };
  const made = Object.assign(new DataPathInMemory(), proxy === undefined ? {} : { services: proxy });
  return await Agent.start(config, {
    logger: createLogger("error", () => undefined),
    system: await openSystem(),
    createDataPath: () => made,
    dataPathName: dataPath,
    livenessProbes: [],
  });
}

test.each(["bridge", "ovs", "hns"] as const)(
  "services of the configuration are those of the data path: %s",
  async (dataPath) => {
    const proxy = new ServiceProxyInMemory();
    const agent = await start(dataPath, section, proxy);
    expect([...proxy.inForce.values()]).toMatchObject([
      { key: "x/web", port: 80, cluster: [{ port: 8080, isLocal: true }] },
    ]);
    await agent.stop();
  },
);

test("without the section a data path is told of no services", async () => {
  const proxy = new ServiceProxyInMemory();
  const agent = await start("bridge", undefined, proxy);
  expect(proxy.calls).toBe(0);
  await agent.stop();
});

test("with the section a data path that balances none refuses the start", async () => {
  await expect(start("bridge", section)).rejects.toMatchObject({
    code: 7,
    message: 'Cannot balance services: the data path "bridge" does not, wanted no section "services"',
  });
});
