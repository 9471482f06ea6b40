import { readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { carriedMark } from "../agent/commands/install/executable-marks.ts";
import { type BundledPage, bundlePage } from "../operator/page/bundle-page.ts";
import { type Processor, seal } from "./seal.ts";

/** How executables are made of sources. */

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Entry files of threads, found in the executable under the same path. A thread's file that is not listed here would be
 * missing without an error. Programs without such a thread carry it unused.
 */
export const windowsThreads = [resolve(root, "agent/protocols/hcn/hcn-worker.windows.ts")];

/** What an executable carries in its bytes, and never loads. */
const carrier = resolve(root, "forward/carried.ts");

export interface Executable {
  /** Path of the program's first file. */
  readonly entry: string;
  /** Bun's name for the base executable that the program is put into. */
  readonly base: "bun-linux-x64" | "bun-linux-arm64" | "bun-windows-x64";
  readonly outfile: string;
  /** The version of a release; absent: that of package.json. */
  readonly version?: string;
  /** Of `shared/version.ts`, 32 digits; absent: none. */
  readonly buildId?: string;
  /** What `version --licenses` prints; absent: it has nothing to print. */
  readonly licences?: string;
  /** The small program of `forward/` for its system; absent: "pipette install" installs the whole one in its place. */
  readonly smallProgram?: Uint8Array;
  /** Whether it obeys Bun's own environment variables, for tests that need one. Default: no. */
  readonly unsealed?: boolean;
}

/**
 * Compiles one executable.
 * @throws where the sources do not bundle, Bun's base executable is not there, or is none that can be sealed
 */
export async function compileExecutable({
  entry,
  base,
  outfile,
  version,
  buildId,
  licences,
  smallProgram,
  unsealed = false,
}: Executable): Promise<void> {
  const sources = await bundling(entry);
  const { outputs } = await Bun.build({
    ...sources,
    define: {
      ...sources.define,
      // Of shared/version.ts, shared/licences.ts and forward/carried.ts.
      ...(version === undefined ? {} : { releaseVersion: JSON.stringify(version) }),
      ...(buildId === undefined ? {} : { buildIdOfExecutable: JSON.stringify(buildId) }),
      ...(licences === undefined ? {} : { licencesOfExecutable: JSON.stringify(licences) }),
      ...(smallProgram === undefined ? {} : { carriedProgram: JSON.stringify(carriedMark(smallProgram)) }),
    },
    entrypoints: [
      entry,
      ...(base === "bun-windows-x64" ? windowsThreads : []),
      ...(smallProgram === undefined ? [] : [carrier]),
    ],
    // A thread's file is found by its path from here.
    root,
    bytecode: true,
    compile: {
      target: base,
      outfile,
      // A plugin ends before JIT compilation pays: this saves 0.6 ms of its processor time, and a tenth for an agent's
      // first pods. Long-running code is still compiled, some calls later.
      jitPolicy: 10,
      // A root plugin runs in the runtime's working directory: nothing there may change what it does.
      autoloadDotenv: false,
      autoloadBunfig: false,
    },
  });
  const [program] = outputs;
  if (!unsealed && program !== undefined) await sealFile(program.path, base === "bun-linux-arm64" ? "arm64" : "x64");
}

async function sealFile(path: string, processor: Processor): Promise<void> {
  const program = await readFile(path);
  seal(program, processor);
  await writeFile(path, program);
}

/** How the sources become the JavaScript that an executable holds, in pieces that are loaded when they are needed. */
export async function bundling(entry: string) {
  return {
    entrypoints: [entry],
    target: "bun",
    minify: true,
    // Bytecode alone would make CommonJS, which has no top-level await and starts slower.
    format: "esm",
    // Without it the `node:` imports of every lazy chunk are hoisted to the start: 2.5 ms for each call.
    splitting: true,
    // Without this it would be a package's directory on the compiling machine, so that the executable would depend on
    // the place of the sources and reveal it. Files there are not in the executable anyway.
    define: { __dirname: JSON.stringify("/") },
    plugins: [inPieces(await bundlePieces()), withPage(await bundlePage())],
  } as const satisfies Partial<Bun.BuildConfig>;
}

/** The first files of the two plugins, which are started for every pod. */
export const pieces = ["cni/mod.ts", "ipam/main.ts"].map((path) => resolve(root, path));

/**
 * Files that a plugin's piece shares with code that it loads later: they define classes that one side throws and the
 * other tests with `instanceof`, so there must be only one copy. `bundle.test.ts` holds the list.
 */
export const common = ["shared/errors.ts", "shared/rpc/rpc-error.ts"].map((path) => resolve(root, path));

/**
 * Splitting cuts a program wherever parts share code, so a plugin would consist of nine chunks. Loading them costs
 * time, and together they take the engine over 64 blocks of memory, from which on it starts two threads: 1 ms of the 6
 * ms of an ADD. So each plugin is bundled into one piece, with copies of shared code.
 */
async function bundlePieces(): Promise<ReadonlyMap<string, string>> {
  const texts = new Map<string, string>();
  for (const first of pieces) texts.set(first, (await bundlePiece(first)).text);
  return texts;
}

const inPieces = (texts: ReadonlyMap<string, string>): Bun.BunPlugin => ({
  name: "each plugin in one piece",
  setup(build) {
    build.onLoad({ filter: /[\\/](mod|main)\.ts$/ }, ({ path }) => {
      const contents = texts.get(path);
      return contents === undefined ? undefined : { contents, loader: "js" };
    });
  },
});

/** The page's files as texts in the executable: read when somebody opens the page, and not before. */
const withPage = ({ files }: BundledPage): Bun.BunPlugin => ({
  name: "the page's files",
  setup(build) {
    const texts = files.map(({ gzip, ...file }) => ({ ...file, gzip: Buffer.from(gzip).toString("base64") }));
    const contents = `export const pageFiles = async () =>
      ${JSON.stringify(texts)}.map((file) => ({ ...file, gzip: Uint8Array.fromBase64(file.gzip) }));`;
    build.onLoad({ filter: /[\\/]operator[\\/]page[\\/]page-files\.ts$/ }, () => ({ contents, loader: "js" }));
  },
});

/**
 * A plugin's files as one piece, with their paths; code that it loads later, and files shared with that, stay outside.
 */
export async function bundlePiece(
  first: string,
): Promise<{ readonly text: string; readonly files: readonly string[] }> {
  const files = new Set<string>();
  const built = await Bun.build({
    entrypoints: [first],
    target: "bun",
    format: "esm",
    plugins: [
      {
        name: "what is loaded later, and what is common, stays outside",
        setup(build) {
          build.onResolve({ filter: /^\./ }, ({ path, importer, kind }) => {
            const file = resolve(dirname(importer), path);
            const outside = kind === "dynamic-import" || common.includes(file);
            if (outside) return { path: file, external: true };
            files.add(file);
            return undefined;
          });
        },
      },
    ],
  });
  return { text: (await built.outputs[0]?.text()) ?? "", files: [first, ...files] };
}
