import { expect, test } from "vitest";
import { LiveValue } from "../../shared/async/live-value.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { createLogger } from "../../shared/log.ts";
import { eventually } from "../../test/support/agent-process.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import type { TenantRegistry } from "./node-registry.ts";
import { RegistryCache } from "./registry-cache.ts";
import { CachedTenants } from "./remembered-tenants.ts";

/** A registry that can be gone, and refuse. */
class Tenants implements TenantRegistry {
  readonly live = new LiveValue<ReadonlyMap<string, number>>();
  fails: CniError | undefined;
  next = 10;

  async vnidOf(): Promise<number> {
    if (this.fails !== undefined) throw this.fails;
    return this.next;
  }

  assign(): Promise<number> {
    return this.vnidOf();
  }

  follow() {
    const { live } = this;
    return {
      get current() {
        return live.current;
      },
      subscribe: live.subscribe.bind(live),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }
}

const gone = new CniError(CniCode.tryAgainLater, "gone");
const logger = createLogger("error", () => undefined);

test("a project that was heard of has its VNID while the registry is gone, also after a restart", async () => {
  using scratch = scratchDir();
  const registry = new Tenants();
  {
    await using known = new RegistryCache(scratch.path, "r", logger);
    await using tenants = new CachedTenants(registry, known, logger);
    expect(await tenants.vnidOf("asked")).toBe(10);
    registry.live.set(
      new Map([
        ["asked", 10],
        ["heard", 11],
      ]),
    );
    await eventually(() => tenants.follow().current?.size === 2, "the map");
    registry.fails = gone;
    expect(await tenants.vnidOf("heard")).toBe(11);
    await expect(tenants.vnidOf("new")).rejects.toBe(gone);
    await expect(tenants.assign("heard", "own")).rejects.toBe(gone);
  }
  await using known = new RegistryCache(scratch.path, "r", logger);
  const silent = new Tenants();
  silent.fails = gone;
  await using tenants = new CachedTenants(silent, known, logger);
  expect(await tenants.vnidOf("asked")).toBe(10);
  expect(tenants.follow().current?.get("heard")).toBe(11);
  // A refusal is an answer.
  silent.fails = new CniError(CniCode.ipamFailure, "none is free");
  await expect(tenants.vnidOf("asked")).rejects.toThrow("none is free");
});

/** A registry that nodes may write, with a place where only people may. */
class Shared extends Tenants {
  readonly confirmed = new LiveValue<ReadonlyMap<string, number>>();

  followConfirmed() {
    const { confirmed: live } = this;
    return {
      get current() {
        return live.current;
      },
      subscribe: live.subscribe.bind(live),
      [Symbol.asyncDispose]: async () => undefined,
    };
  }
}

test("a number that nobody has confirmed is told of, and counts neither now nor after a restart", async () => {
  using scratch = scratchDir();
  const registry = new Shared();
  const told = (vnids: object): void => registry.live.set(new Map(Object.entries(vnids)));
  {
    await using known = new RegistryCache(scratch.path, "r", logger);
    await using tenants = new CachedTenants(registry, known, logger);
    told({ red: 10, blue: 11 });
    await eventually(() => tenants.follow().current?.size === 2, "the map");
    told({ red: 11, blue: 11, evil: 11 });
    await eventually(() => tenants.refusals.length === 2, "the refusals");
    expect(Object.fromEntries(tenants.follow().current ?? [])).toEqual({ red: 10, blue: 11 });
    registry.next = 11;
    await expect(tenants.vnidOf("evil")).rejects.toMatchObject({
      code: 11,
      message: expect.stringContaining('project "evil" has no VNID here: the registry says 11, that of "blue"'),
    });
    expect(await tenants.vnidOf("red")).toBe(10);
  }
  await using known = new RegistryCache(scratch.path, "r", logger);
  await using tenants = new CachedTenants(registry, known, logger);
  expect(await tenants.vnidOf("red")).toBe(10);
  registry.confirmed.set(
    new Map([
      ["red", 11],
      ["blue", 11],
    ]),
  );
  await eventually(() => tenants.follow().current?.get("red") === 11, "the person's word");
  expect(tenants.refusals).toEqual([expect.stringContaining('project "evil"')]);
});
