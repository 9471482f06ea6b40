import { expect, test } from "vitest";
import { createLogger } from "../../../../shared/log.ts";
import { parseIp } from "../../../../shared/net/ip.ts";
import { ConntrackFlusher } from "./conntrack-flusher.ts";

const gone = {
  family: 4,
  ip: parseIp("10.96.0.10")!,
  port: 53,
  endpoint: { ip: parseIp("10.10.1.2")!, port: 53 },
} as const;

test("endpoints that go without end do not put off those that went before", async () => {
  const log: string[] = [];
  const flowLagMs = 100;
  await using connections = new ConntrackFlusher({
    management: "unix:/nowhere/br-int.mgmt",
    logger: createLogger("info", (line) => void log.push(line)),
    flowLagMs,
  });
  // Nobody listens: what it asks for shows as a failure.
  for (let i = 0; i < 100 && log.length === 0; i++) {
    connections.add([gone]);
    await Bun.sleep(flowLagMs / 10);
  }
  expect(log.join()).toContain("/nowhere/br-int.mgmt");
});
