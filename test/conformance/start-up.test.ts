import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { bundling } from "../../build/bundle.ts";
import { startCommand } from "../support/cni-call.ts";
import { compileUnsealed } from "../support/compile-unsealed.ts";
import { whyNot } from "../support/requires.ts";
import { compileExecutables, executables, scratch, variables } from "./plugin.ts";
import { startScriptedAgent } from "./scripted-agent.ts";

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

beforeAll(async () => {
  await Bun.build({
    ...(await bundling(join(root, "main.ts"))),
    outdir: directory.path,
    naming: { chunk: "[name]-[hash].[ext]" },
  });
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
      lazy: [...new Set(of("dynamic-import").filter(isChunk))],
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

/** The plugin of `main.ts`; the agent, which runs calls that are handed to it, holds the same sentence. */
function pluginChunk(): string {
  const { lazy } = chunks.get("./main.js")!;
  const found = lazy.filter((name) => chunks.get(name)?.text.includes("has not unwired the sandbox"));
  expect(found).toHaveLength(1);
  return found[0]!;
}

/** `main.ts` imports `ipam/main.ts`, and nothing else that is called so. */
function ipamChunk(): string {
  const found = chunks.get("./main.js")!.lazy.filter((name) => name.startsWith("./main-"));
  expect(found).toHaveLength(1);
  return found[0]!;
}

test("the start imports nothing of the runtime, nor does the plugin, in whatever verb", () => {
  const plugin = pluginChunk();
  expect(builtinsOf(loadedWith("./main.js"))).toEqual([]);
  expect(builtinsOf(loadedWith(plugin))).toEqual([]);
});

test("the IPAM plugin imports only modules that cost little", () => {
  expect(builtinsOf(loadedWith(ipamChunk())).filter((name) => !allowed.includes(name))).toEqual([]);
});

test("no plugin loads what serves, nor the messages of its services", () => {
  const faces = ["./main.js", pluginChunk(), ipamChunk()];
  const early = new Set(faces.flatMap((name) => [...loadedWith(name)]));
  // A sentence of the server, of the allocator's service, of a daemon's lock, and the services' names.
  for (const mark of [
    "Cannot watch the health",
    "and the server no ranges for it",
    "is held by process",
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

test("a plugin stays below the memory from which on the engine starts threads of its own", async ({ skip }) => {
  skip(whyNot("strace") !== undefined, whyNot("strace"));
  compileExecutables();
  await using agent = await startScriptedAgent();
  const dataDir = join(directory.path, "data");
  const ipam = { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.1.0.0/24" }]] };
  const conf = { cniVersion: "1.0.0", name: "n", type: "pipette", socket: agent.socket, dataDir, ipam };
  const trace = join(directory.path, "trace");
  const threadsOf = async (
    name: string,
    verb: string,
    more: Readonly<Record<string, string>> = {},
    at = executables,
  ) => {
    const command = ["strace", "-f", "-e", "trace=clone3", "-o", trace, join(at, name)];
    const { status, stdout } = await startCommand(command, { ...variables(verb), ...more }, JSON.stringify(conf)).ended;
    expect(status, stdout).toBe(0);
    return readFileSync(trace, "utf8").match(/clone3\(/g)?.length ?? 0;
  };
  expect([await threadsOf("pipette", "ADD"), await threadsOf("pipette", "DEL")]).toEqual([0, 0]);
  // The first call makes the database, which is once in a node's life.
  await threadsOf("pipette-ipam", "ADD", { CNI_CONTAINERID: "first" });
  expect([await threadsOf("pipette-ipam", "ADD"), await threadsOf("pipette-ipam", "DEL")]).toEqual([0, 0]);
  // With the engine's own bound lowered: so a thread would be seen.
  await compileUnsealed(directory.path, "pipette");
  const lowered = { BUN_JSC_warmUpMarkedBlockStartAfterBlocks: "20" };
  expect(await threadsOf("pipette", "ADD", lowered, directory.path)).toBeGreaterThan(0);
});

test("this test sees what it looks for: the log file is written through node:fs, in a chunk of its own", () => {
  expect(builtinsOf([lazyChunkWith("Cannot write the log")])).toContain("fs");
});
