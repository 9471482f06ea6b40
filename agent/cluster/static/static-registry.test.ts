import { closeSync, constants, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import { formatCidr, parseIp } from "../../../shared/net/ip.ts";
import { eventually } from "../../../test/support/eventually.ts";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { readNodeFile } from "./node-file.ts";
import { StaticRegistry } from "./static-registry.ts";

const two = `nodes:
  - { name: a, addresses: [192.168.1.1], mac: "52:54:00:00:00:01", subnets: [10.1.0.0/24, "fd00:1::/64"] }
  - { name: b, uid: of-b, addresses: [192.168.1.2], subnets: [10.1.1.0/24] }
tenants: { shop: 10, kube-system: 0 }
`;

function fileOf(text: string) {
  const scratch = scratchDir();
  const path = join(scratch.path, "nodes.yaml");
  writeFileSync(path, text);
  const log: string[] = [];
  const logger = createLogger("info", (line) => void log.push(line));
  const registry = new StaticRegistry({ file: path, logger, intervalMs: 10 });
  return { path, log, registry, [Symbol.dispose]: () => scratch[Symbol.dispose]() };
}

const self = (name: string, uid = "mine") => ({ name, uid, addresses: [parseIp("192.168.1.9")].filter((ip) => !!ip) });

test("a node finds itself in the file, with what stands there", async () => {
  using file = fileOf(two);
  const own = await file.registry.register(self("a"));
  expect({ ...own, subnets: own.subnets.map(formatCidr) }).toEqual({
    name: "a",
    uid: "",
    addresses: [parseIp("192.168.1.1")],
    mac: "52:54:00:00:00:01",
    subnets: ["10.1.0.0/24", "fd00:1::/64"],
  });
  expect((await file.registry.list()).map(({ name, state }) => [name, state])).toEqual([
    ["a", "unknown"],
    ["b", "unknown"],
  ]);
});

test("what is missing is named, and what only a person can change", async () => {
  using file = fileOf(two);
  const { registry, path } = file;
  await expect(registry.register(self("c"))).rejects.toMatchObject({
    code: 101,
    message: expect.stringContaining(
      `"${path}" has no node "c", wanted an entry such as { name: c, addresses: [192.168.1.9]`,
    ),
  });
  await expect(registry.register(self("b"))).rejects.toMatchObject({
    code: 7,
    message: expect.stringContaining('has the uid "of-b", wanted this machine\'s "mine"'),
  });
  expect((await registry.register(self("b", "of-b"))).uid).toBe("of-b");
  expect(await registry.release("c")).toBe(false);
  await expect(registry.release("a")).rejects.toThrow("is written by people, not by Pipette, wanted its entry");
  expect(await registry.tenants.vnidOf("shop")).toBe(10);
  expect(await registry.tenants.vnidOf("default")).toBe(0);
  await expect(registry.tenants.vnidOf("new")).rejects.toThrow('wanted it under "tenants" there');
  await expect(registry.tenants.assign("shop", "own")).rejects.toThrow('wanted it changed under "tenants" there');
  writeFileSync(path, "nodes: [");
  await expect(registry.list()).rejects.toMatchObject({ code: 11, message: expect.stringContaining(`${path}:1:`) });
  renameSync(path, `${path}.gone`);
  await expect(registry.list()).rejects.toMatchObject({ code: 11, message: expect.stringContaining("ENOENT") });
});

test("a pipe in the file's place is said, and not waited for", async () => {
  using file = fileOf(two);
  const { path, registry } = file;
  rmSync(path);
  await execa("mkfifo", [path]);
  const answer = registry.list().catch((caught: Error) => caught.message);
  const late = Bun.sleep(3000).then(() => "late");
  const said = await Promise.race([answer, late]);
  // Lets go of whoever waits for a writer.
  closeSync(openSync(path, constants.O_RDWR | constants.O_NONBLOCK));
  expect(said).toContain("cannot be read: it is no file");
});

test("followers get each state of the file, and keep the last good one", async () => {
  using file = fileOf(two);
  const { registry, path, log } = file;
  await using nodes = registry.follow();
  await using tenants = registry.tenants.follow();
  const seen: string[][] = [];
  nodes.subscribe((map) => void seen.push([...map.keys()]));
  await eventually(() => seen.length === 1 && tenants.current !== undefined, "the first nodes");
  expect(tenants.current).toEqual(
    new Map([
      ["shop", 10],
      ["kube-system", 0],
    ]),
  );
  writeFileSync(path, two.slice(0, 120));
  await eventually(() => log.length > 0, "a word about the half file");
  expect([seen.length, nodes.current?.size]).toEqual([1, 2]);
  writeFileSync(`${path}.new`, two.replace("name: b", "name: c"));
  renameSync(`${path}.new`, path);
  await eventually(() => seen.length === 2, "the next nodes");
  expect(seen[1]).toEqual(["a", "c"]);
});

test.each([
  ["two of one name", two.replace("name: b", "name: a"), ['"nodes[1].name" is "a" for the second time']],
  [
    "two with one address",
    two.replace("192.168.1.2", "192.168.1.1"),
    ['nodes.yaml:3:5: "nodes[1]" is with "192.168.1.1", the address of "a"'],
  ],
  [
    "an address that every machine has",
    two.replace("192.168.1.2", "127.0.0.1"),
    ['nodes.yaml:3:39: "nodes[1].addresses[0]" is "127.0.0.1", wanted an address that other nodes reach'],
  ],
  [
    "a subnet around another's",
    two.replace("10.1.1.0/24", "10.1.0.0/16"),
    ['"nodes[1]" is with "10.1.0.0/16", which overlaps with "10.1.0.0/24" of "a"'],
  ],
  ["two subnets of one family", two.replace('"fd00:1::/64"', "10.2.0.0/24"), ['"nodes[0].subnets" is two of one']],
  ["no subnets", two.replace("[10.1.1.0/24]", "[]"), ['"nodes[1].subnets" is a list of 0 entries']],
  ["a VNID that is kept back", two.replace("10,", "9,"), ['"tenants.shop" is 9, wanted a map']],
  ["a project that is none", two.replace("shop", "Shop"), ['"tenants.Shop" is 10']],
  ["an unknown key", two.replace("uid:", "id:"), ['"nodes[1].id" is an unknown key']],
])("a file is refused for %s", (_name, text, wanted) => {
  const read = readNodeFile(text, "nodes.yaml");
  const problems = read.t === "wrong" ? read.problems : [];
  expect(problems.map((problem, i) => problem.includes(wanted[i] ?? "-"))).toEqual(wanted.map(() => true));
});

test("five thousand nodes are read in a moment as JSON", () => {
  const nodes = Array.from({ length: 5000 }, (_, i) => ({
    name: `node-${i}`,
    addresses: [`172.16.${i >> 8}.${i & 255}`],
    subnets: [`10.${i >> 8}.${i & 255}.0/24`],
  }));
  const read = readNodeFile(JSON.stringify({ nodes }), "nodes.json");
  expect(read.t === "ok" && read.value.nodes.size).toBe(5000);
});
