import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLogger } from "../../shared/log.ts";
import { eventually } from "../../test/support/agent-process.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { nodeOfText } from "./node-text.ts";
import { nodeUid } from "./node-uid.ts";
import { RegistryCache } from "./registry-cache.ts";

const node = (i: number) =>
  nodeOfText({ name: `n${i}`, uid: "u", addresses: [`192.0.2.${i}`], subnets: [`10.0.${i}.0/24`] });
const nodes = (...which: number[]) => new Map(which.map((i) => [`n${i}`, node(i)]));

function opened(directory: string, registry = "etcd x") {
  const log: string[] = [];
  return {
    file: new RegistryCache(
      directory,
      registry,
      createLogger("info", (line) => void log.push(line)),
    ),
    log,
  };
}

test("who this node is counts from the moment that it is told; the others a moment later, at the end for sure", async () => {
  using scratch = scratchDir();
  const { file } = opened(scratch.path);
  const again = () => opened(scratch.path).file.state;
  file.join(node(1));
  expect(again().self).toEqual(node(1));
  file.update({ nodes: nodes(1, 2) });
  file.update({ nodes: nodes(1, 2, 3), tenants: new Map([["shop", 10]]) });
  await eventually(() => again().nodes.size === 3, "the write");
  expect(again().tenants).toEqual(new Map([["shop", 10]]));
  file.update({ nodes: nodes(2) });
  await file[Symbol.asyncDispose]();
  expect(again()).toEqual({ self: node(1), nodes: nodes(2), admitted: true, tenants: new Map([["shop", 10]]) });
  file.leave("taken out");
  expect(again()).toMatchObject({
    self: node(1),
    refused: "taken out",
    nodes: nodes(2),
    tenants: new Map([["shop", 10]]),
  });
  file.join(node(1));
  expect(again().refused).toBeUndefined();
  expect(readdirSync(scratch.path)).toEqual(["nodes.json"]);
});

test("a write that the disk delays does not undo a later one", async () => {
  using scratch = scratchDir();
  const { file } = opened(scratch.path);
  file.join(node(1));
  file.update({ nodes: nodes(1, 2) });
  file.leave("taken out");
  await Bun.sleep(200);
  expect(opened(scratch.path).file.state).toMatchObject({ refused: "taken out", nodes: nodes(1, 2) });
  expect(readdirSync(scratch.path)).toEqual(["nodes.json"]);
});

test("what a later release has more in the file costs its earlier one nothing on the way back", () => {
  using scratch = scratchDir();
  opened(scratch.path).file.join(node(1));
  const path = join(scratch.path, "nodes.json");
  const later = (text: string) =>
    text.replace('"version"', '"later":{"a":1},"version"').replace('"uid"', '"zone":"x","uid"');
  writeFileSync(path, later(readFileSync(path, "utf8")));
  const { file, log } = opened(scratch.path);
  expect([file.state.self, log]).toEqual([node(1), []]);
});

test("a file of a release that kept records as they came is read, whatever they say, and has no peers yet", async () => {
  using scratch = scratchDir();
  opened(scratch.path).file.join(node(1));
  const path = join(scratch.path, "nodes.json");
  const { admitted, ...earlier } = JSON.parse(readFileSync(path, "utf8"));
  earlier.nodes = [{ name: "liar", addresses: ["192.0.2.9"], subnets: ["224.0.0.0/4"] }];
  writeFileSync(path, JSON.stringify(earlier));
  const { file, log } = opened(scratch.path);
  expect([admitted, file.state.admitted, file.state.self, log]).toEqual([true, false, node(1), []]);
  expect([...file.state.nodes.keys()]).toEqual(["liar"]);
  file.update({ tenants: new Map([["shop", 10]]) });
  expect(file.state.admitted).toBe(false);
  file.update({ nodes: nodes(2) });
  await file[Symbol.asyncDispose]();
  expect(opened(scratch.path).file.state).toMatchObject({ admitted: true, nodes: nodes(2) });
});

test.each([
  ["half of it", (text: string) => text.slice(0, text.length / 2)],
  ["another version", (text: string) => text.replace('"version":1', '"version":2')],
  ["a subnet that is none", (text: string) => text.replace("10.0.1.0/24", "10.0.1.1/24")],
  ["a VNID that is none", (text: string) => text.replace('"tenants":{}', '"tenants":{"a":"b"}')],
  ["nothing", () => ""],
])("a file with %s is nothing known, and said to be", (_name, spoil) => {
  using scratch = scratchDir();
  opened(scratch.path).file.join(node(1));
  const path = join(scratch.path, "nodes.json");
  writeFileSync(path, spoil(readFileSync(path, "utf8")));
  const { file, log } = opened(scratch.path);
  expect(file.state).toEqual({ nodes: new Map(), admitted: true, tenants: new Map() });
  expect(log.join()).toContain("what was known of the other nodes is of no use");
});

test("another registry's is not ours, and a directory that cannot be written is told of once", () => {
  using scratch = scratchDir();
  opened(scratch.path).file.join(node(1));
  expect(opened(scratch.path, "etcd y").file.state.self).toBeUndefined();
  expect(opened(scratch.path).log).toEqual([]);
  const path = join(scratch.path, "nodes.json");
  rmSync(path);
  mkdirSync(path);
  const { file, log } = opened(scratch.path);
  file.join(node(1));
  file.join(node(2));
  expect(log.filter((line) => line.includes("cannot be kept"))).toHaveLength(1);
});

test("a node that cannot be written as one costs the others nothing", async () => {
  using scratch = scratchDir();
  const strange = { ...node(2), mac: "no mac" };
  const early = { ...node(3), subnets: [] };
  const { file } = opened(scratch.path);
  file.update({ nodes: new Map([node(1), strange, early].map((each) => [each.name, each])) });
  await file[Symbol.asyncDispose]();
  expect([...opened(scratch.path).file.state.nodes.keys()]).toEqual(["n1"]);
});

test("the uid is made once, also by two at a time, and never over what is there", () => {
  using scratch = scratchDir();
  const uid = nodeUid(scratch.path);
  expect(uid).toMatch(/^[0-9a-f-]{36}$/);
  expect(nodeUid(scratch.path)).toBe(uid);
  expect(readdirSync(scratch.path)).toEqual(["node-uid"]);
  writeFileSync(join(scratch.path, "node-uid"), "scribble");
  expect(() => nodeUid(scratch.path)).toThrow('holds "scribble", wanted a UUID');
});
