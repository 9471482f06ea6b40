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
/** A kill may come a moment after the write that it is meant for. */
const mostKills = 24;
const longestWriteMs = 5_000;

test(`whenever an agent is killed, what it has kept of policies is whole, seed ${seed}`, async () => {
  using directory = scratchDir();
  const next = random(seed);
  const logger = createLogger("error", () => undefined);
  const seen = new Set<string | undefined>();
  const halfWritten = (): readonly string[] => readdirSync(directory.path).filter((name) => name.endsWith(".tmp"));
  let within = 0;
  for (let i = 0; i < leastKills || (i < mostKills && (within === 0 || seen.size < 2)); i++) {
    const agent = Bun.spawn([process.execPath, program, directory.path], { stdout: "pipe", stderr: "inherit" });
    // It writes by then.
    const reader = agent.stdout.getReader();
    await reader.read();
    reader.releaseLock();
    const before = new Set(halfWritten());
    const isNew = (name: string): boolean => !before.has(name);
    const untilMs = performance.now() + longestWriteMs;
    if (i % 2 === 0) await Bun.sleep(next(60));
    else while (!halfWritten().some(isNew) && performance.now() < untilMs);
    agent.kill("SIGKILL");
    await agent.exited;
    if (halfWritten().some(isNew)) within++;
    const read = new StateFile(directory.path, new RuleStore(), logger).read();
    if (read.t !== "ok") expect(read).toBe("whole");
    else seen.add(read.state.policies?.set.computed.get("x/a"));
    expect(statSync(join(directory.path, "policies.state")).mode & 0o777).toBe(0o600);
  }
  expect([seen.size > 1, within > 0]).toEqual([true, true]);
});
