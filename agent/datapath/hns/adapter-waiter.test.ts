import { expect, test, vi } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import type { PodPort } from "../ovs/mod.ts";
import { AdapterWaiter } from "./adapter-waiter.ts";

/** A busy machine needs more than the second that is usual. */
const until = (done: () => boolean): Promise<boolean> => vi.waitUntil(done, { timeout: 20_000 });

const pod = (port: string): PodPort => ({
  owner: { network: "pods", sandboxId: port, ifname: "eth0" },
  port,
  mac: "00:15:5d:01:02:03",
  ips: [],
  netns: "none",
  ownLease: true,
});

/** Adapters that have come, what was asked for, and what was connected. */
function world() {
  const come = new Set<string>();
  const asked: string[][] = [];
  const connected: string[] = [];
  const refusing = new Set<string>();
  const lines: string[] = [];
  const waiter = new AdapterWaiter({
    started: async (ports) => {
      asked.push([...ports]);
      if (come.has("nothing works")) throw new Error("PowerShell is broken");
      return new Set(ports.filter((port) => come.has(port)));
    },
    connect: async ({ port }) => {
      if (refusing.delete(port)) throw new Error("the database is away");
      connected.push(port);
    },
    logger: createLogger("debug", (line) => lines.push(line)),
    firstLookMs: 1,
  });
  return { come, asked, connected, refusing, lines, waiter };
}

test("a pod is connected when its adapter has come, once, and all are looked for together", async () => {
  const { waiter, come, asked, connected } = world();
  for (const port of ["a", "b"]) waiter.expect(pod(port));
  await until(() => asked.length >= 2);
  expect(asked[0]).toEqual(["a", "b"]);
  expect(connected).toEqual([]);
  come.add("b");
  await until(() => connected.includes("b"));
  await until(() => asked.at(-1)?.join() === "a");
  come.add("a");
  await until(() => connected.includes("a"));
  const looks = asked.length;
  await Bun.sleep(30);
  expect([connected, asked.length]).toEqual([["b", "a"], looks]);
});

test("pods that keep coming do not put the look off", async () => {
  const { waiter, asked } = world();
  for (let n = 0; asked.length === 0 && n < 1000; n++) {
    waiter.expect(pod(`p${n % 50}`));
    await Bun.sleep(0);
  }
  expect(asked.length).toBeGreaterThan(0);
  waiter[Symbol.dispose]();
});

test("neither a look that fails nor a database that is away ends the wait", async () => {
  const { waiter, come, asked, connected, refusing, lines } = world();
  come.add("nothing works");
  waiter.expect(pod("a"));
  await until(() => asked.length >= 2);
  come.delete("nothing works");
  refusing.add("a");
  come.add("a");
  await until(() => connected.includes("a"));
  expect(lines.join()).toContain("PowerShell is broken");
  expect(lines.join()).toContain("the database is away");
});

test("a pod that has gone is not connected any more, and nothing is looked for after the end", async () => {
  const { waiter, come, asked, connected } = world();
  for (const port of ["a", "b"]) waiter.expect(pod(port));
  await waiter.forget(pod("a").owner);
  come.add("a");
  await until(() => asked.length >= 2);
  expect(asked.flat()).not.toContain("a");
  waiter[Symbol.dispose]();
  const looks = asked.length;
  come.add("b");
  await Bun.sleep(50);
  expect([connected, asked.length <= looks + 1]).toEqual([[], true]);
});

test("a pod that is to go while it is being connected is waited for, since its port goes next", async () => {
  const connected = Promise.withResolvers<void>();
  const said: string[] = [];
  const waiter = new AdapterWaiter({
    started: async (ports) => new Set(ports),
    connect: async () => {
      said.push("begun");
      await connected.promise;
      said.push("connected");
    },
    logger: createLogger("error", () => undefined),
    firstLookMs: 1,
  });
  waiter.expect(pod("a"));
  await until(() => said.length > 0);
  const forgotten = waiter.forget(pod("a").owner).then(() => said.push("forgotten"));
  await Bun.sleep(5);
  connected.resolve();
  await forgotten;
  expect(said).toEqual(["begun", "connected", "forgotten"]);
});

test("an ADD that comes while the pod's earlier adapter is being connected has its own connected next", async () => {
  const connecting = Promise.withResolvers<void>();
  const macs: string[] = [];
  using waiter = new AdapterWaiter({
    started: async (ports) => new Set(ports),
    connect: async ({ mac }) => {
      macs.push(mac);
      if (macs.length === 1) await connecting.promise;
    },
    logger: createLogger("error", () => undefined),
    firstLookMs: 1,
  });
  waiter.expect(pod("a"));
  await until(() => macs.length > 0);
  waiter.expect({ ...pod("a"), mac: "00:15:5d:0a:0b:0c" });
  connecting.resolve();
  await until(() => macs.length > 1);
  expect(macs).toEqual(["00:15:5d:01:02:03", "00:15:5d:0a:0b:0c"]);
});

test("a pod that never starts is left alone in the end, until an ADD asks again", async () => {
  const { waiter, come, asked, connected, lines } = world();
  using now = vi.spyOn(performance, "now").mockReturnValue(0);
  waiter.expect(pod("a"));
  await until(() => asked.length >= 1);
  now.mockReturnValue(601_000);
  await until(() => lines.join().includes("has not come"));
  const looks = asked.length;
  waiter.expect(pod("b"));
  await until(() => asked.length > looks);
  expect(asked.at(-1)).toEqual(["b"]);
  come.add("a");
  waiter.expect(pod("a"));
  await until(() => connected.includes("a"));
  waiter[Symbol.dispose]();
});
