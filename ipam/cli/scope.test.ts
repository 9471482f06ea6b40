import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ipamTerminal, usualIpam } from "../../test/fakes/ipam-terminal.ts";
import { runAt } from "../../test/fakes/terminal-run.ts";
import { ipamCommands } from "./commands.ts";

describe("a network that was never used", () => {
  const commands = (path: string): readonly (readonly string[])[] => [
    ["list"],
    ["show", "10.1.0.2"],
    ["stats"],
    ["map"],
    ["release", "10.1.0.2"],
    ["gc", "--keep", `${path}/keep.json`],
    ["gc", "--keep", `${path}/keep.json`, "--dry-run"],
    ["export", "--to", `${path}/given-back`],
  ];

  test.each(Array.from({ length: 8 }, (_, i) => [i]))("is refused with those that were (command %i)", async (i) => {
    using node = ipamTerminal();
    await node.allocate("s1");
    writeFileSync(`${node.path}/keep.json`, "[]");
    const args = commands(node.path)[i]!;
    const { status, stderr } = await node.run(...args, "--network", "bleu");
    expect([status, stderr]).toEqual([
      3,
      expect.stringContaining(`no network "bleu" was ever used in "${node.dataDir}", wanted "blue"\n`),
    ]);
    expect(existsSync(`${node.path}/given-back`)).toBe(false);
    // The right name, and the lease is as it was.
    expect(await node.json("list", "--network", "blue")).toHaveLength(2);
  });

  test("one whose leases have all gone was used", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.change((store) => {
      for (const lease of store.select({ by: "network" })) store.remove(lease);
    });
    expect(await node.json("list", "--network", "blue")).toEqual([]);
    expect((await node.run("list", "--network", "black")).status).toBe(3);
  });

  test("and one that a configuration names need not have been", async () => {
    using node = ipamTerminal();
    using other = ipamTerminal();
    writeFileSync(
      other.conf,
      JSON.stringify({ cniVersion: "1.0.0", name: "green", ipam: { type: "pipette-ipam", ...usualIpam } }),
    );
    await node.allocate("s1");
    expect(await node.json("list", "--conf", other.conf)).toEqual([]);
    writeFileSync(`${node.path}/keep.json`, "[]");
    const collected = await node.json("gc", "--conf", other.conf, "--keep", `${node.path}/keep.json`);
    expect(collected).toMatchObject({ network: "green", released: [] });
    expect(await node.json("list")).toHaveLength(2);
  });
});

describe("--conf", () => {
  test("says whose leases, and where they lie, for every command", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.allocate("s2");
    const run = (...args: string[]) => runAt("pipette ipam", ipamCommands, [...args, "--conf", node.conf]);
    const rows = async (): Promise<number> => JSON.parse((await run("list", "--json")).stdout).length;
    expect(await rows()).toBe(4);
    expect((await run("show", "s1")).stdout).toContain("default/s1");
    expect(await run("release", "--container", "s1")).toMatchObject({ status: 0, stderr: "" });
    writeFileSync(`${node.path}/keep.json`, "[]");
    const collected = await run("gc", "--keep", `${node.path}/keep.json`);
    expect(collected).toMatchObject({ status: 0, stdout: expect.stringContaining('2 addresses of network "blue"') });
    expect(await run("export", "--to", `${node.path}/given-back`)).toMatchObject({ status: 0, stderr: "" });
    expect(readdirSync(`${node.path}/given-back`)).toContain("last_reserved_ip.0");
  });

  test("or --network is wanted where one network is", async () => {
    using node = ipamTerminal();
    for (const args of [
      ["gc", "--keep", "/dev/null"],
      ["export", "--to", `${node.path}/given-back`],
    ])
      expect(await node.run(...args)).toMatchObject({
        status: 2,
        stderr: expect.stringContaining("--network NAME or --conf FILE"),
      });
  });

  test("shows the pool before its first ADD, all of it free, and makes nothing", async () => {
    using node = ipamTerminal();
    for (const command of ["map", "stats"]) {
      const { status, stdout, stderr } = await node.run(command, "--conf", node.conf, "--json");
      expect([status, stderr]).toEqual([0, `"${node.dataDir}" holds no leases.db: nothing was given out there yet\n`]);
      expect(JSON.parse(stdout)).toMatchObject({ pools: [{ total: 237, allocated: 0, free: 237 }, { allocated: 0 }] });
    }
    expect(existsSync(node.dataDir)).toBe(false);
  });
});

test("check tells of a configuration before its first ADD", async () => {
  using node = ipamTerminal();
  const said = `"${node.dataDir}" holds no leases.db: nothing was given out there yet\n`;
  const sound = await node.run("check", "--conf", node.conf);
  expect(sound).toEqual({ status: 0, stdout: `${node.dataDir}/leases.db: 0 leases, in order\n`, stderr: said });
  writeFileSync(node.conf, readFileSync(node.conf, "utf8").replace('"exclude"', '"exlude"'));
  const slip = await node.run("check", "--conf", node.conf);
  expect([slip.status, slip.stdout]).toEqual([1, expect.stringContaining('do:   write "exclude"')]);
  expect(existsSync(node.dataDir)).toBe(false);
});

test.each([["list"], ["stats"], ["map"], ["check"]])(
  "PIPETTE_DATA_DIR stands for --data-dir of %s",
  async (command) => {
    using node = ipamTerminal();
    await node.allocate("s1");
    const env = { PIPETTE_DATA_DIR: node.dataDir };
    const run = (...more: string[]) => runAt("pipette ipam", ipamCommands, [command, ...more], { env });
    expect((await run()).status).toBe(0);
    // What is typed counts more, and so does what a configuration says.
    expect((await run("--data-dir", `${node.path}/none`)).status).toBe(3);
  },
);

test("a configuration that names its data directory counts more than PIPETTE_DATA_DIR", async () => {
  using node = ipamTerminal();
  await node.allocate("s1");
  const around = { env: { PIPETTE_DATA_DIR: `${node.path}/none` } };
  const { stdout } = await runAt("pipette ipam", ipamCommands, ["list", "--conf", node.conf, "--json"], around);
  expect(JSON.parse(stdout)).toHaveLength(2);
});
