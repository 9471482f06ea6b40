import { expect, test } from "vitest";
import { importsOf, isTest, roomOf, type Source, sources } from "./sources.ts";

// What only tests need is no product, and what a unit test needs is small.

const typescript = sources("*.ts", "*.mts");

/** Where the product begins. */
const entries = [
  "main.ts",
  // What package.json exports.
  "ipam/service/ipam-client.ts",
  // A thread, started by its path.
  "agent/protocols/hcn/hcn-worker.windows.ts",
];

/** Of test/support what helps with any test at all; the rest there is for executables and machines. */
const forUnits = [
  ...["certificates", "eventually", "frames/frame", "frames/pod-frames", "noise", "random", "requires", "scratch-dir"],
  "seed",
].map((name) => `test/support/${name}.ts`);

/** All files of the product that are not reached from its entries. */
function unreached(all: readonly Source[]): string[] {
  const byPath = new Map(all.map((source) => [source.path, source]));
  const reached = new Set<string>();
  const reach = (path: string): void => {
    const source = byPath.get(path);
    if (source === undefined || reached.has(path)) return;
    reached.add(path);
    for (const target of importsOf(source)) reach(target);
  };
  for (const source of all)
    if (entries.includes(source.path) || (roomOf(source.path) === "build" && !isTest(source.path))) reach(source.path);
  return all
    .map(({ path }) => path)
    .filter((path) => /^(agent|cni|controller|ipam|shared)\//.test(path) && !isTest(path) && !reached.has(path));
}

/** What unit tests import from test/ that is neither a double nor a help for any test. */
const beyondUnits = (all: readonly Source[]): string[] =>
  all
    .filter(({ path }) => path.endsWith(".test.ts") && !path.startsWith("test/"))
    .flatMap((source) => importsOf(source).map((target) => ({ path: source.path, target })))
    .filter(({ target }) => target.startsWith("test/") && !target.startsWith("test/fakes/"))
    .filter(({ target }) => !forUnits.includes(target))
    .map(({ path, target }) => `${path} imports ${target}`);

const sample = (path: string, text: string): Source => ({ path, text, lines: [] });

test("no file of the product is there for tests only: doubles stand in test/fakes/", () => {
  expect(unreached(typescript)).toEqual([]);
  const samples = [
    sample("main.ts", 'import "./cni/a.ts";'),
    sample("cni/a.ts", ""),
    sample("cni/a.test.ts", 'import "./b-in-memory.ts";'),
    sample("cni/b-in-memory.ts", ""),
  ];
  expect(unreached(samples)).toEqual(["cni/b-in-memory.ts"]);
});

test("unit tests import nothing from test/ but doubles and what helps with any test", () => {
  expect(beyondUnits(typescript)).toEqual([]);
  const text = 'import "../test/fakes/a.ts";\nimport "../test/support/random.ts";\nimport "../test/overlay/c.ts";';
  expect(beyondUnits([sample("cni/a.test.ts", text)])).toEqual(["cni/a.test.ts imports test/overlay/c.ts"]);
});

test("tests draw from a seed, so that what fails can be seen again", () => {
  const drawing = typescript.filter(({ path, text }) => isTest(path) && /\bMath\.random\(/.test(text));
  expect(drawing.map(({ path }) => path)).toEqual([]);
});
