import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type { TarEntry } from "../../shared/archive/tar.ts";
import { bundledPackages } from "./components.ts";
import { thirdPartyOfPackages } from "./licences.ts";

/**
 * The client of the allocator as a package of its own, for programs under Node and Bun: JavaScript and types, and nothing
 * to install besides.
 */

const source = "ipam/service/ipam-client.ts";
const sampleSource = "test/ipam/service-example.ts";
const text = (path: string, content: string | Uint8Array): TarEntry => ({
  t: "file",
  path: `package/${path}`,
  mode: 0o644,
  bytes: typeof content === "string" ? Buffer.from(content) : content,
});

/** Entries of the archive that npm installs. */
export async function clientPackage(root: string, version: string, scratch: string): Promise<readonly TarEntry[]> {
  const entry = join(root, source);
  const manifest = {
    name: "pipette",
    version,
    description: "Client of Pipette's address allocator on a node",
    license: "Apache-2.0",
    type: "module",
    exports: {
      "./ipam-client": { types: "./types/ipam/service/ipam-client.d.ts", default: "./ipam-client.js" },
    },
    imports: { [ffi]: { bun: "./ffi.bun.js", default: "./ffi.js" } },
    engines: { node: ">=20" },
    files: ["*.js", "types", "sample.ts", "THIRD-PARTY.txt"],
  };
  return [
    text("package.json", `${JSON.stringify(manifest, undefined, 2)}\n`),
    text("README.md", readme(version, readFileSync(join(root, sampleSource), "utf8"))),
    text("LICENSE", readFileSync(join(root, "LICENSE"))),
    text("THIRD-PARTY.txt", thirdPartyOfPackages(await bundledPackages(root, entry))),
    text("sample.ts", readFileSync(join(root, sampleSource))),
    text("ipam-client.js", await bundle(root, entry)),
    text("ffi.bun.js", 'export * from "bun:ffi";\n'),
    text("ffi.js", ffiOfNode),
    ...typesOf(root, scratch).map(({ path, content }) => text(`types/${path}`, content)),
  ];
}

/** Not minified: an error shows lines of it. */
async function bundle(root: string, entry: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [entry],
    root,
    target: "node",
    format: "esm",
    // Else the directory of a package on the machine that builds.
    define: { __dirname: JSON.stringify("/") },
    plugins: [foreignFunctionsByCondition],
  });
  const bundled = (await outputs[0]?.text()) ?? "";
  // Bun names each file that a part comes from, as seen from where it is run.
  return bundled.replaceAll(/^\/\/ \S+\.(?:js|ts|json)\n/gm, "");
}

/** The package's own name for foreign functions: Bun's, and none under Node. */
const ffi = "#ffi";

const foreignFunctionsByCondition: Bun.BunPlugin = {
  name: "foreign functions by condition",
  setup(build) {
    build.onResolve({ filter: /^bun:ffi$/ }, () => ({ path: ffi, external: true }));
  },
};

/**
 * On Windows the client asks the system whose the pipe's server is before it sends a byte, by functions of Windows' own,
 * which Node cannot call: there it says so instead of trusting whoever made a pipe of that name.
 */
const ffiOfNode = `const refuse = () => {
  throw new Error("Cannot look who serves the pipe: Node cannot call Windows for that, wanted Bun on Windows");
};
export const dlopen = refuse, ptr = refuse, read = {}, FFIType = {};
`;

/** What TypeScript says of the client's types: its own file and those that it refers to. */
function typesOf(root: string, scratch: string): readonly { readonly path: string; readonly content: string }[] {
  const outDir = join(scratch, "types");
  const config = join(scratch, "tsconfig.json");
  const compilerOptions = {
    noEmit: false,
    declaration: true,
    emitDeclarationOnly: true,
    outDir,
    rootDir: root,
    typeRoots: [join(root, "node_modules/@types")],
  };
  const project = { extends: join(root, "tsconfig.json"), compilerOptions, include: [], files: [join(root, source)] };
  writeFileSync(config, JSON.stringify(project));
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", config], { stdio: "inherit" });
  const found = new Map<string, string>();
  const follow = (path: string): void => {
    if (found.has(path)) return;
    const declared = readFileSync(path, "utf8");
    found.set(path, declared);
    for (const [, imported = ""] of declared.matchAll(/from "(\.[^"]+)\.ts"/g))
      follow(`${resolve(dirname(path), imported)}.d.ts`);
  };
  follow(join(outDir, source.replace(/\.ts$/, ".d.ts")));
  const files = [...found].map(([path, declared]) => ({
    path: relative(outDir, path),
    // "./x.js" is what TypeScript finds "./x.d.ts" by everywhere; "Disposable" is in no library that is there by default.
    content: `/// <reference lib="esnext.disposable" />\n${declared.replaceAll(/(from "\.[^"]+)\.ts"/g, '$1.js"')}`,
  }));
  rmSync(outDir, { recursive: true, force: true });
  return files.sort((one, other) => (one.path < other.path ? -1 : 1));
}

const readme = (version: string, sample: string): string => `# pipette/ipam-client

Calls the allocator of a node on which Pipette runs: \`pipette ipam serve\`, or the agent. For Node 20 or later, and Bun; on Windows for Bun.

\`\`\`sh
npm install ./pipette-ipam-client-${version.replace("+", "-")}.tgz
\`\`\`

\`\`\`ts
${sample.trim()}
\`\`\`

\`using\` closes the connection at the end of its block. Where your compiler does not know it: \`ipam[Symbol.dispose]()\`.
`;
