import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { scratch } from "./plugin.ts";

// What the plugin imports before it has done anything is paid for by every pod: `node:fs` 2.5 ms,
// `node:net` 6, `node:http2` 10, grpc-js 27, where the whole of an empty program takes 4.

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Modules of the runtime that cost little enough. */
const allowed = ["sqlite", "bun", "bun:ffi"];

interface Chunk {
  readonly builtins: readonly string[];
  readonly chunks: readonly string[];
  /** Chunks that are loaded when somebody asks for them. */
  readonly lazy: readonly string[];
  readonly text: string;
}

const directory = scratch();
const chunks = new Map<string, Chunk>();

beforeAll(() => {
  const flags = ["--format=esm", "--splitting", "--minify", "--target=bun", "--outdir", directory.path];
  const built = spawnSync(process.execPath, ["build", ...flags, join(root, "main.ts")], { encoding: "utf8" });
  expect(built.status, built.stderr).toBe(0);
  const scanner = new Bun.Transpiler({ loader: "js" });
  for (const name of directory.files().filter((file) => file.endsWith(".js"))) {
    const text = readFileSync(join(directory.path, name), "utf8");
    const imports = scanner.scanImports(text);
    const isChunk = (path: string): boolean => path.startsWith("./");
    const of = (kind: string) => imports.filter((found) => found.kind === kind).map(({ path }) => path);
    const direct = [...of("import-statement"), ...of("require-call")];
    chunks.set(`./${name}`, {
      builtins: direct.filter((path) => !isChunk(path)).map((path) => path.replace(/^node:/, "")),
      chunks: direct.filter(isChunk),
      lazy: of("dynamic-import").filter(isChunk),
      text,
    });
  }
  return () => directory[Symbol.dispose]();
});

/** Everything that is loaded together with `name`. */
function loadedWith(name: string, seen: Set<string> = new Set()): Set<string> {
  const chunk = chunks.get(name);
  if (chunk === undefined || seen.has(name)) return seen;
  seen.add(name);
  for (const next of chunk.chunks) loadedWith(next, seen);
  return seen;
}

const builtinsOf = (names: Iterable<string>): string[] => [
  ...new Set([...names].flatMap((name) => chunks.get(name)?.builtins ?? [])),
];

const lazyChunkWith = (mark: string): string => {
  const found = [...chunks.keys()].filter((name) => name !== "./main.js" && chunks.get(name)?.text.includes(mark));
  expect(found, `one chunk with "${mark}"`).toHaveLength(1);
  return found[0]!;
};

test("VERSION, and the start of every other verb, imports nothing of the runtime but what reads standard input", () => {
  expect(builtinsOf(loadedWith("./main.js"))).toEqual(["bun:ffi"]);
});

test("a verb of the plugin imports only modules that cost little", () => {
  const verbs = loadedWith(lazyChunkWith("has not unwired the sandbox"));
  expect(builtinsOf(verbs).filter((name) => !allowed.includes(name))).toEqual([]);
});

test("the IPAM plugin imports only modules that cost little", () => {
  // `main.ts` imports `ipam/mod.ts`, and nothing else that is called so.
  const ipam = chunks.get("./main.js")!.lazy.filter((name) => name.startsWith("./mod-"));
  expect(ipam).toHaveLength(1);
  const loaded = loadedWith(ipam[0]!);
  expect(builtinsOf(loaded).filter((name) => !allowed.includes(name))).toEqual([]);
});

test("no plugin loads what serves, nor the messages of its services", () => {
  const ipam = chunks.get("./main.js")!.lazy.filter((name) => name.startsWith("./mod-"));
  const faces = ["./main.js", lazyChunkWith("has not unwired the sandbox"), ...ipam];
  const early = new Set(faces.flatMap((name) => [...loadedWith(name)]));
  // A sentence of the server, of the allocator's service, of a daemon's lock, and the services' names.
  for (const mark of [
    "Cannot watch the health",
    "and the server no ranges for it",
    "wanted nobody to hold it",
    "/grpc.health.v1.Health/",
    "/pipette.v1.Ipam/",
  ]) {
    const holders = [...chunks.keys()].filter((name) => chunks.get(name)?.text.includes(mark));
    expect(holders, mark).not.toEqual([]);
    expect(
      holders.filter((name) => early.has(name)),
      mark,
    ).toEqual([]);
  }
});

test("this test sees what it looks for: the log file is written through node:fs, in a chunk of its own", () => {
  expect(builtinsOf([lazyChunkWith("Cannot write the log")])).toContain("fs");
});
