import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { Fields } from "../../shared/schema/json-fields.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { runAt } from "../../test/support/terminal-run.ts";
import { Allocator } from "../allocator.ts";
import { parseIpamConfig } from "../config/ipam-config.ts";
import { ipamCommands } from "./commands.ts";

const run = (...args: string[]) => runAt("pipette ipam", ipamCommands, args);

/** Two networks, one with a pod and a lease that cools. */
async function fill(dataDir: string): Promise<void> {
  using allocator = await Allocator.open(dataDir);
  for (const network of ["blue", "red"]) {
    const conf = new Fields({ ipam: { ranges: [[{ subnet: "10.0.0.0/24" }], [{ subnet: "fd00::/64" }]] } });
    const config = parseIpamConfig({ conf, network, version: "1.0.0", args: "" });
    const owner = { network, ifname: "eth0" };
    allocator.allocate({ ...owner, sandboxId: "0123456789abcdef" }, config, {
      namespace: "default",
      name: "web",
      uid: "u1",
    });
    if (network === "red") continue;
    allocator.allocate({ ...owner, sandboxId: "s2" }, config);
    allocator.release({ ...owner, sandboxId: "s2" }, "cooling");
  }
}

test("shows a table, by network and address", async () => {
  using scratch = scratchDir();
  await fill(scratch.path);
  const { status, stdout, stderr } = await run("list", "--data-dir", scratch.path);
  expect([status, stderr]).toEqual([0, ""]);
  const lines = stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/ \d+s$/, " 0s"));
  expect(lines).toEqual([
    "ADDRESS   STATE      NETWORK  SANDBOX        INTERFACE  POD          AGE",
    "10.0.0.2  allocated  blue     0123456789abc  eth0       default/web  0s",
    "10.0.0.3  cooling    blue     s2             eth0       -            0s",
    "fd00::2   allocated  blue     0123456789abc  eth0       default/web  0s",
    "fd00::3   cooling    blue     s2             eth0       -            0s",
    "10.0.0.2  allocated  red      0123456789abc  eth0       default/web  0s",
    "fd00::2   allocated  red      0123456789abc  eth0       default/web  0s",
  ]);
});

test("shows JSON for programs, of one network where asked", async () => {
  using scratch = scratchDir();
  await fill(scratch.path);
  const { status, stdout } = await run("list", `--data-dir=${scratch.path}`, "--json", "--network", "blue");
  expect(status).toBe(0);
  const leases = JSON.parse(stdout);
  expect(leases).toHaveLength(4);
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(leases[0]).toEqual({
    network: "blue",
    address: "10.0.0.2/24",
    gateway: "10.0.0.1",
    state: "allocated",
    containerId: "0123456789abcdef",
    ifname: "eth0",
    podNamespace: "default",
    podName: "web",
    podUid: "u1",
    rangeSet: 0,
    bootId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    generation: 1,
    allocatedAt: time,
  });
  expect(leases[1]).toMatchObject({ state: "cooling", releasedAt: time });
  expect(leases[1]).not.toHaveProperty("podName");
});

test("says so when there is nothing", async () => {
  using scratch = scratchDir();
  await fill(scratch.path);
  expect(await run("list", "--data-dir", scratch.path, "--network", "red", "--state", "cooling")).toEqual({
    status: 0,
    stdout: 'No leases in network "red" that are cooling\n',
    stderr: "",
  });
  expect((await run("list", "--data-dir", scratch.path, "--pod", "x/y", "--json")).stdout).toBe("[]\n");
});

test("without a database fails, and makes none", async () => {
  using scratch = scratchDir();
  const { status, stdout, stderr } = await run("list", "--data-dir", `${scratch.path}/none`);
  expect([status, stdout]).toEqual([3, ""]);
  expect(stderr).toContain(`"${scratch.path}/none" holds no leases.db`);
  expect(existsSync(`${scratch.path}/none`)).toBe(false);
});

test.each([
  [[], "the command is missing, wanted list, show"],
  [["lits"], 'the command is "lits" (did you mean "list"?), wanted list, show'],
  [["list", "--jsno"], '"--jsno" is no option of it (did you mean "--json"?)'],
  [["list", "extra"], '"extra" is one word too many, wanted nothing but options'],
  [["list", "--json=yes"], '"--json=yes" is no option of it'],
  [["list", "--network"], '"--network" has no value'],
  [["list", "--data-dir="], '"--data-dir" has no value'],
  [["list", "--network", "../x"], '"--network" is "../x", wanted'],
  [["list", "--network", "--json"], '"--network" has no value, wanted NAME'],
  [["list", "--state", "gone"], '"--state" is "gone", wanted allocated, releasing or cooling'],
  [["list", "--state", "cooling", "--state", "cooling"], '"--state" is there twice'],
  [["list", "-x"], '"-x" is no option of it'],
])("%j is refused", async (args, wanted) => {
  const { status, stdout, stderr } = await run(...args);
  expect([status, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(wanted);
});

test.each([[["--help"]], [["list", "--help"]], [["list", "--json", "-h"]]])("%j helps", async (args) => {
  const { status, stdout, stderr } = await run(...args);
  expect([status, stderr]).toEqual([0, ""]);
  expect(stdout).toContain("Usage: pipette ipam");
});

test.each([
  [
    ["--state", "cooling"],
    ["10.0.0.3", "fd00::3"],
  ],
  [
    ["--pod", "default/web", "--network", "red"],
    ["10.0.0.2", "fd00::2"],
  ],
  [
    ["--pod", "default/", "--network", "red", "--state", "allocated"],
    ["10.0.0.2", "fd00::2"],
  ],
  [["--pod", "defau/"], []],
  [
    ["--sandbox", "s"],
    ["10.0.0.3", "fd00::3"],
  ],
  [
    ["--sandbox", "012345", "--network", "blue"],
    ["10.0.0.2", "fd00::2"],
  ],
])("%j narrows it down", async (filters, wanted) => {
  using scratch = scratchDir();
  await fill(scratch.path);
  const { status, stdout } = await run("list", "--data-dir", scratch.path, "--json", ...filters);
  const addresses = (JSON.parse(stdout) as { address: string }[]).map(({ address }) => address.split("/")[0]);
  expect([status, addresses]).toEqual([0, wanted]);
});

test("names that would command the terminal stay text", async () => {
  using scratch = scratchDir();
  await fill(scratch.path);
  using allocator = await Allocator.open(scratch.path);
  allocator.transaction((store): void => {
    for (const lease of store.select({ by: "network" }))
      store.put({ ...lease, pod: { namespace: "\u001b[2J", name: "a\nb\u202e", uid: "" } });
  });
  const table = await run("list", "--data-dir", scratch.path);
  expect(table.stdout).toContain("\\u001b[2J/a\\u000ab\\u202e");
  expect(table.stdout.split("\n")).toHaveLength(1 + 6 + 1);
  const json = await run("list", "--data-dir", scratch.path, "--json");
  expect(json.stdout).toMatch(/^[\n -~]*$/);
  expect(JSON.parse(json.stdout)[0]).toMatchObject({ podNamespace: "\u001b[2J", podName: "a\nb\u202e" });
});
