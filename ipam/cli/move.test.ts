import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ipamTerminal } from "../../test/fakes/ipam-terminal.ts";

/** A directory of host-local with these files. */
function directoryIn(path: string, files: Readonly<Record<string, string>>): string {
  const directory = `${path}/host-local`;
  mkdirSync(directory);
  for (const [name, text] of Object.entries(files)) writeFileSync(`${directory}/${name}`, text);
  return directory;
}

test("import takes leases over, with what a configuration knows of them, and export gives them back", async () => {
  using node = ipamTerminal();
  const from = directoryIn(node.path, {
    "10.1.0.7": "s7\r\neth0",
    "fd00:1::7": "s7\r\neth0",
    "last_reserved_ip.0": "10.1.0.7",
  });
  const imported = await node.run("import", "--conf", node.conf, "--from", from);
  expect(imported).toMatchObject({ status: 0, stderr: "" });
  expect(imported.stdout).toContain(`Leases of host-local in "${from}" for network "blue": 2 taken over`);
  expect(await node.json("list")).toMatchObject([
    { address: "10.1.0.7/24", gateway: "10.1.0.1", containerId: "s7" },
    { address: "fd00:1::7/64", rangeSet: 1 },
  ]);
  await node.allocate("s8");
  const to = `${node.path}/given-back`;
  const exported = await node.run("export", "--network", "blue", "--to", to);
  expect(exported).toMatchObject({ status: 0, stderr: "" });
  expect(exported.stdout).toContain(`Wrote 4 addresses of network "blue" to "${to}"`);
  expect(readdirSync(to)).toEqual(expect.arrayContaining(["10.1.0.7", "10.1.0.8", "fd00:1::7"]));
  expect(readFileSync(`${to}/10.1.0.8`, "utf8")).toBe("s8\r\neth0");
});

test("import lists what was left out, and ends with 1", async () => {
  using node = ipamTerminal();
  await node.allocate("ours");
  const from = directoryIn(node.path, { "10.1.0.2": "theirs\r\neth0", "not-an-address": "x" });
  const { status, stdout } = await node.run("import", "--network", "blue", "--from", from);
  expect(status).toBe(1);
  expect(stdout).toContain('"10.1.0.2" of "theirs" (eth0) was not taken over: it is held by "ours"');
  expect(stdout).toContain(`"${from}/not-an-address" was not understood`);
});

test("import and export say what is missing", async () => {
  using node = ipamTerminal();
  expect(await node.run("import")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("nothing says of which network"),
  });
  expect(await node.run("import", "--network", "blue")).toMatchObject({
    status: 3,
    stderr: expect.stringContaining(`host-local has no directory for network "blue" in "${node.dataDir}"`),
  });
  expect(await node.run("import", "--network", "blue", "--from", `${node.path}/none`)).toMatchObject({
    status: 3,
    stderr: `Cannot import leases: "${node.path}/none" is no directory, wanted one; --from DIR names another\n`,
  });
  expect((await node.run("export", "--network", "blue", "--to", `${node.path}/to`)).status).toBe(3);
  expect(readdirSync(node.path)).toEqual(["blue.conflist"]);
});

test("a long import shows how far it is on a terminal, and says it in lines where that is wanted", async () => {
  using node = ipamTerminal();
  const many = Object.fromEntries(
    Array.from({ length: 3000 }, (_, i) => [`10.2.${i >> 8}.${i & 255}`, `s${i}\r\neth0`]),
  );
  const from = directoryIn(node.path, many);
  const { status, stderr } = await node.runWith(
    { stderrIsTerminal: true },
    "import",
    "--network",
    "blue",
    "--from",
    from,
  );
  expect(status).toBe(0);
  const shown = stderr.split("\r\u001b[K").filter((line) => line !== "");
  for (const line of shown) expect(line).toMatch(/^\d+ of \d+ \(\d+ %\) (files read|leases kept)$/);
  expect(stderr === "" || stderr.endsWith("\r\u001b[K")).toBe(true);
  expect((await node.json("list")) as unknown[]).toHaveLength(3000);
});

test("export says all that it did, in words and in JSON, and names files as Windows can", async () => {
  using node = ipamTerminal();
  await node.allocate("s1");
  const to = `${node.path}/given`;
  expect(await node.json("export", "--network", "blue", "--to", to, "--windows-names")).toEqual({
    directory: to,
    network: "blue",
    leases: 2,
    written: expect.any(Number),
    removed: 0,
    unreadable: [],
  });
  expect(readdirSync(to)).toEqual(expect.arrayContaining(["10.1.0.2", "fd00_1__2"]));
  await node.run("release", "--container", "s1");
  writeFileSync(`${to}/10.1.0.2`, "");
  const { status, stdout } = await node.run("export", "--conf", node.conf, "--to", to, "--windows-names");
  expect([status, stdout]).toEqual([0, expect.stringContaining('of network "blue" to')]);
  expect((await node.run("export", "--to", to)).status).toBe(2);
  expect((await node.run("export", "--network", "red", "--to", to)).status).toBe(3);
});
