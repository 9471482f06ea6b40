import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { conflistPath } from "./conflist.ts";
import { leftBehind, sweepLeftBehind } from "./left-behind.ts";

let scratch: ReturnType<typeof scratchDir>;
let config: AgentConfig;
/** A number that no process can have. */
const dead = 4_194_305;
/** Somebody who lives, and is not this process. */
const alive = process.ppid;

beforeEach(async () => {
  scratch = scratchDir();
  using parts = await partsInMemory();
  const cni = { ...parts.config.cni, confDir: join(scratch.path, "net.d"), fileName: "10-pipette.conflist" };
  config = { ...parts.config, dataDir: join(scratch.path, "data"), cni };
  for (const directory of ["net.d", "data", "data/hns"]) mkdirSync(join(scratch.path, directory));
});
afterEach(() => scratch[Symbol.dispose]());

const write = (...names: readonly string[]): void => {
  for (const name of names) writeFileSync(join(scratch.path, name), "half");
};
const standing = (): readonly string[] =>
  ["net.d", "data", "data/hns"].flatMap((directory) =>
    readdirSync(join(scratch.path, directory), { withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => `${directory}/${name}`),
  );

test("what killed writers have left goes with the next start, wherever they wrote, and nothing else", () => {
  expect(dirname(conflistPath(config) ?? "")).toBe(join(scratch.path, "net.d"));
  const left = [
    `net.d/10-pipette.conflist.${dead}.tmp`,
    `data/nodes.json.later.${dead}.tmp`,
    // As releases before this one named it.
    `data/nodes.json.${dead}.later.tmp`,
    `data/uid.${dead}.tmp`,
    // In a container every agent has one number.
    `data/nodes.json.${process.pid}.tmp`,
    `data/hns/x.json.${dead}.tmp`,
  ];
  const others = [
    "net.d/10-pipette.conflist",
    `net.d/05-other.conflist.${dead}.tmp`,
    `data/nodes.json.${alive}.tmp`,
    "data/nodes.json",
    "data/notes.tmp",
    "data/hns/x.json",
  ];
  write(...left, ...others);
  mkdirSync(join(scratch.path, `data/directory.${dead}.tmp`));
  expect(sweepLeftBehind(config).toSorted()).toEqual(left.map((name) => join(scratch.path, name)).sort());
  expect(standing().toSorted()).toEqual(others.toSorted());
});

test("a process that lives is done with it after a minute, this one's own may be under way", () => {
  write(`data/nodes.json.${alive}.tmp`, `data/nodes.json.${process.pid}.tmp`);
  expect(leftBehind(config, Date.now())).toEqual([]);
  const path = join(scratch.path, `data/nodes.json.${alive}.tmp`);
  utimesSync(path, Date.now() / 1000, Date.now() / 1000 - 61);
  expect(leftBehind(config, Date.now())).toEqual([path]);
});

test("where a directory is missing there is nothing", () => {
  expect(leftBehind({ ...config, dataDir: join(scratch.path, "none") }, Date.now())).toEqual([]);
});
