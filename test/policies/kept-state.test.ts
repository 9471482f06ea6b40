import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RuleStore } from "../../agent/policies/rule-store.ts";
import { StateFile } from "../../agent/policies/state-file.ts";
import { createLogger } from "../../shared/log.ts";
import { random } from "../support/random.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { seed } from "../support/seed.ts";

const program = new URL("kept-state-program.ts", import.meta.url).pathname;
const kills = 10;

test(`whenever an agent is killed, what it has kept of policies is whole, seed ${seed}`, async () => {
  using directory = scratchDir();
  const next = random(seed);
  const logger = createLogger("error", () => undefined);
  const seen = new Set<string | undefined>();
  for (let i = 0; i < kills; i++) {
    const agent = Bun.spawn([process.execPath, program, directory.path], { stdout: "pipe", stderr: "inherit" });
    // It writes by then.
    const reader = agent.stdout.getReader();
    await reader.read();
    reader.releaseLock();
    await Bun.sleep(next(60));
    agent.kill("SIGKILL");
    await agent.exited;
    const read = new StateFile(directory.path, new RuleStore(), logger).read();
    if (read.t !== "ok") expect(read).toBe("whole");
    else seen.add(read.state.policies?.set.computed.get("x/a"));
    expect(statSync(join(directory.path, "policies.state")).mode & 0o777).toBe(0o600);
  }
  // It was killed at different moments, and some of them were within a write.
  expect(seen.size).toBeGreaterThan(1);
  expect(readdirSync(directory.path).some((name) => name.endsWith(".tmp"))).toBe(true);
});
