import { expect, test } from "vitest";
import { createLogger } from "../../../../shared/log.ts";
import { parseIp } from "../../../../shared/net/ip.ts";
import { ConntrackFlusher } from "./conntrack-flusher.ts";

const gone = {
  service: { clusterIp: parseIp("10.96.0.10")!, protocol: "udp", port: 53 },
  endpoint: { ip: parseIp("10.10.1.2")!, port: 53 },
} as const;

test("endpoints that go without end do not put off those that went before", async () => {
  const log: string[] = [];
  const settleMs = 100;
  await using connections = new ConntrackFlusher({
    management: "unix:/nowhere/br-int.mgmt",
    logger: createLogger("info", (line) => void log.push(line)),
    settleMs,
  });
  // Nobody listens: what it asks for shows as a failure.
  for (let i = 0; i < 100 && log.length === 0; i++) {
    connections.add([gone]);
    await Bun.sleep(settleMs / 10);
  }
  expect(log.join()).toContain("/nowhere/br-int.mgmt");
});
