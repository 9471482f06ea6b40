import { expect, test } from "vitest";
import { runAt } from "../../test/fakes/terminal-run.ts";
import { ipamCommands } from "./commands.ts";

const run = (...args: readonly string[]) => runAt("pipette ipam", ipamCommands, args);

test.each([
  [["allocate", "--container", "s1"], '"--conf" is missing'],
  [["allocate", "--conf", "x"], '"--container" is missing'],
  [["allocate", "--conf", "x", "--container", "../x"], '"--container" is "../x"'],
  [["allocate", "--conf", "x", "--container", "s1", "--ifname", "a/b"], '"--ifname" is "a/b"'],
  [["allocate", "--conf", "x", "--container", "s1", "--ip", "10.0.0"], '"--ip" is "10.0.0"'],
  [["allocate", "--conf", "x", "--container", "s1", "--pod", "web"], '"--pod" is "web"'],
  [["export"], '"--to" is missing'],
  [["gc"], '"--keep" is missing'],
  [["list", "--network", "a b"], '"--network" is "a b"'],
  [["show"], "is missing"],
])("what a command needs is asked for before it runs: %j", async (args, problem) => {
  const { status, stderr } = await run(...args);
  expect([status, stderr]).toEqual([2, expect.stringContaining(problem)]);
});

test("each command says what it does, but those that only our own scripts run are not listed", async () => {
  const { stdout } = await run("--help");
  for (const { name, hidden, load } of ipamCommands.entries) {
    expect([name, stdout.includes(`\n  ${name} `)]).toEqual([name, hidden !== true]);
    const command = await load();
    expect([name, command.about === ""]).toEqual([name, false]);
    expect((await run(name, "--help")).stdout).toContain(`Usage: pipette ipam ${name} `);
  }
  expect(ipamCommands.entries.filter(({ hidden }) => hidden).map(({ name }) => name)).toEqual(["names"]);
});
