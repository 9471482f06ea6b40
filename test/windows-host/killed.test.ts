import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { HostFixture, restored, steps } from "./set-up-fixture.ts";

describe.each([true, false])("killed at any point (Windows moves the address: %s)", (moves) => {
  const acts = moves ? steps.length : steps.length + restored.length;
  const points = Array.from({ length: acts }, (_, at) =>
    (["before the next", "after the last"] as const).map(
      (when) => [at + (when === "after the last" ? 1 : 0), when] as const,
    ),
  ).flat();

  test.each(points)(
    "of set-up, %i changes done, %s: the next run ends where an untouched one does",
    async (at, when) => {
      using untouched = new HostFixture();
      untouched.moves = moves;
      await untouched.start();
      using host = new HostFixture();
      host.moves = moves;
      const fresh = host.snapshot();
      host.node.killAfter(at, when);
      await expect(host.start()).rejects.toThrow("the agent is dead");
      expect(host.node.done).toHaveLength(at);
      host.node.revive();
      await host.start();
      expect(host.snapshot()).toEqual(untouched.snapshot());
      await host.cleanUp();
      if (moves) expect(host.snapshot()).toEqual(fresh);
    },
  );

  test.each(points)("of set-up, %i changes done, %s: clean-up leaves nothing", async (at, when) => {
    using host = new HostFixture();
    host.moves = moves;
    const fresh = host.snapshot() as Record<string, unknown>;
    host.node.killAfter(at, when);
    await expect(host.start()).rejects.toThrow("the agent is dead");
    host.node.revive();
    const { changes } = await host.cleanUp();
    expect(changes.filter(({ did }) => did === "failed")).toEqual([]);
    const after = host.snapshot() as Record<string, unknown>;
    if (moves) expect(after).toEqual(fresh);
    else expect({ ...after, routes: [] }).toEqual({ ...fresh, routes: [] });
    expect(existsSync(join(host.dataDir, "windows-host"))).toBe(false);
  });

  const undoing = Array.from({ length: steps.length }, (_, at) => at);
  test.each(undoing)("of clean-up, after %i changes: the next run goes on", async (at) => {
    using host = new HostFixture();
    host.moves = moves;
    const fresh = host.snapshot() as Record<string, unknown>;
    await host.start();
    host.node.killAfter(at, "before the next");
    const { changes } = await host.cleanUp().catch((caught) => ({ changes: [{ did: String(caught) }] }));
    expect(changes.some(({ did }) => did === "failed")).toBe(true);
    host.node.revive();
    expect((await host.cleanUp()).changes.filter(({ did }) => did === "failed")).toEqual([]);
    expect({ ...(host.snapshot() as object), routes: moves ? fresh["routes"] : [] }).toEqual({
      ...fresh,
      routes: moves ? fresh["routes"] : [],
    });
  });
});
