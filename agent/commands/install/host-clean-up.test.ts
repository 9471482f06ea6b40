import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { planHostCleanUp } from "./host-clean-up.ts";

test("where nothing of the host is on record there is no such step", async () => {
  using scratch = scratchDir();
  expect(await planHostCleanUp(scratch.path, "agent.yaml")).toEqual([]);
});

test.each(["windows-host", "hns"])(
  "a clean-up of what %s holds that fails ends the removal, with its words",
  async (name) => {
    using scratch = scratchDir();
    mkdirSync(join(scratch.path, name));
    expect(await planHostCleanUp(scratch.path, "agent.yaml")).toEqual([]);
    writeFileSync(join(scratch.path, name, "pods.json"), "{}");
    const [step] = await planHostCleanUp(scratch.path, join(scratch.path, "agent.yaml"));
    expect(step?.detail).toContain("pipette agent --cleanup --config");
    // What runs here is Bun itself, which has no such command.
    await expect(step?.run?.()).rejects.toThrow(
      /Cannot take the host's network set-up back: .* did not succeed: its exit status was 1, wanted status 0/,
    );
  },
);
