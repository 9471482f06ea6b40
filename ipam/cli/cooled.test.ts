import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type IpamTerminal, ipamTerminal } from "../../test/fakes/ipam-terminal.ts";

const second = 1000;

// Else a slow machine would take longer than the cooldown.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterEach(() => void vi.useRealTimers());

/** A pool of five addresses, all of which one pod after the other had and left `agoMs` ago. */
async function emptied(agoMs: number, cooldown: object = { cooldownMs: second }): Promise<IpamTerminal> {
  const node = ipamTerminal({ ranges: [[{ subnet: "10.1.0.0/29" }]], ...cooldown });
  for (const id of ["s1", "s2", "s3", "s4", "s5"]) await node.allocate(id);
  for (const id of ["s1", "s2", "s3", "s4", "s5"]) await node.run("release", "--container", id);
  await node.change((store) => {
    const releasedAtMs = Date.now() - agoMs;
    for (const lease of store.select({ by: "network" })) store.put({ ...lease, releasedAtMs });
  });
  return node;
}

const free = { total: 5, allocated: 0, releasing: 0, cooling: 0, free: 5 };
const cooling = { ...free, cooling: 5, free: 0 };

test.each([
  ["over", 3 * second, {}, free],
  ["not over", 3 * second, { cooldownMs: 60 * second }, cooling],
  ["over, as long as it usually is", 31 * second, {}, free],
  ["not over, as long as it usually is", 20 * second, {}, cooling],
])("a cooldown that is %s", async (_what, agoMs, usual, wanted) => {
  const isUsual = agoMs > 10 * second;
  using node = await emptied(agoMs, isUsual ? {} : { cooldownMs: second, ...usual });
  // What the network's ADDs were configured with holds without --conf, too.
  for (const more of [[], ["--conf", node.conf]]) {
    expect(await node.json("stats", ...more)).toMatchObject({ pools: [wanted] });
    expect(await node.json("map", ...more)).toMatchObject({ pools: [wanted] });
    expect(await node.json("list", ...more)).toHaveLength(wanted.cooling);
    expect(await node.json("list", "--state", "cooling", ...more)).toHaveLength(wanted.cooling);
    expect((await node.run("show", "10.1.0.2", ...more)).status).toBe(wanted === free ? 3 : 0);
    expect((await node.run("release", "10.1.0.2", ...more)).status).toBe(wanted === free ? 3 : 0);
  }
  expect((await node.run("map", "--ascii")).stdout).toContain(wanted === free ? "G....." : "G~~~~~");
  expect((await node.run("stats")).stdout).toContain(wanted === free ? " 0 %" : " 100 %");
});

test("the configuration at hand counts more than the one of the latest ADD", async () => {
  using node = await emptied(3 * second, { cooldownMs: 60 * second });
  using other = ipamTerminal({ ranges: [[{ subnet: "10.1.0.0/29" }]], cooldownMs: second });
  expect(await node.json("stats", "--conf", other.conf)).toMatchObject({ pools: [free] });
  expect(await node.json("stats")).toMatchObject({ pools: [cooling] });
});

test("of an address that is free again its last holder is told", async () => {
  using node = await emptied(3 * second);
  const { stdout, stderr } = await node.run("show", "10.1.0.2");
  expect(stdout).toBe("");
  expect(stderr).toContain('"10.1.0.2" has no lease and lies in blue 10.1.0.1-10.1.0.6');
  expect(stderr).toMatch(/it was last of sandbox "s1" \(eth0\) of pod "default\/s1", until \d{4}-/);
});

test("says of what all sets gave together that it is theirs together", async () => {
  using node = ipamTerminal();
  for (const id of ["s1", "s2", "s3"]) await node.allocate(id);
  using one = ipamTerminal({ ranges: [[{ subnet: "10.2.0.0/24" }]] });
  const { status } = await node.run("allocate", "--conf", one.conf, "--container", "s9");
  expect(status).toBe(0);
  const { stdout } = await node.run("stats");
  expect(stdout).not.toContain("ALLOCATIONS");
  // Seven in all, of which the first is the oldest.
  expect(stdout).toContain("\n6 addresses given since the oldest of these leases, by all range sets of the database\n");
});
