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
const leastKills = 8;
/** On a machine where everything takes long, more are needed until some were within a write. */
const mostKills = 60;

test(`whenever an agent is killed, what it has kept of policies is whole, seed ${seed}`, async () => {
  using directory = scratchDir();
  const next = random(seed);
  const logger = createLogger("error", () => undefined);
  const seen = new Set<string | undefined>();
  const wasWithin = (): boolean => readdirSync(directory.path).some((name) => name.endsWith(".tmp"));
  for (let i = 0; i < leastKills || (i < mostKills && !(wasWithin() && seen.size > 1)); i++) {
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
  expect([seen.size > 1, wasWithin()]).toEqual([true, true]);
});
