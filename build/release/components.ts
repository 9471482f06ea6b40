import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { bundlePage } from "../../operator/page/bundle-page.ts";
import { bundling } from "../bundle.ts";
import { whyNoSmallProgram } from "../forward.ts";

/** A third-party component of an executable. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** As SPDX names it; several licences, or a choice of them, as SPDX' expression. */
  readonly licence: string;
  readonly source: string;
  /** The licence's text with its copyright, where the package brings it. */
  readonly text?: string;
}

/**
 * npm packages with code in the bundle of `entry`, by the bundler's report, without code removed by tree shaking.
 * @param root the directory that the packages are installed in
 */
export async function bundledPackages(root: string, entry: string): Promise<readonly Component[]> {
  const { metafile } = await Bun.build({ ...(await bundling(entry)), root, metafile: true });
  const names = new Set<string>();
  for (const { inputs } of Object.values(metafile?.outputs ?? {}))
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const name = packageIn(path);
      if (name !== undefined && bytesInOutput > 0) names.add(name);
    }
  // The page is bundled apart, for browsers.
  for (const path of (await bundlePage()).inputs) names.add(packageIn(path) ?? "");
  names.delete("");
  return [...names].sort().map((name) => npmPackage(root, name));
}

const packageIn = (path: string): string | undefined => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];

function npmPackage(root: string, name: string): Component {
  const directory = join(root, "node_modules", name);
  const { version, license }: { version: string; license: string } = JSON.parse(
    readFileSync(join(directory, "package.json"), "utf8"),
  );
  const text = readdirSync(directory).find((file) => /^licen[cs]e(\.md|\.txt)?$/i.test(file));
  return {
    name,
    version,
    licence: license,
    source: `https://www.npmjs.com/package/${name}`,
    ...(text === undefined ? {} : { text: readFileSync(join(directory, text), "utf8") }),
  };
}

/** What Bun's executable has been linked from: the name in Bun's own `process.versions` first, "" where it says none. */
const linked = [
  ["webkit", "WebKit (JavaScriptCore)", "LGPL-2.0-or-later AND BSD-2-Clause", "https://github.com/oven-sh/WebKit"],
  ["boringssl", "BoringSSL", "Apache-2.0 AND ISC AND OpenSSL", "https://boringssl.googlesource.com/boringssl"],
  ["", "Brotli", "MIT", "https://github.com/google/brotli"],
  ["libarchive", "libarchive", "BSD-2-Clause", "https://github.com/libarchive/libarchive"],
  ["lolhtml", "LOL HTML", "BSD-3-Clause", "https://github.com/cloudflare/lol-html"],
  ["lshpack", "ls-hpack", "MIT", "https://github.com/litespeedtech/ls-hpack"],
  ["", "ls-qpack", "MIT", "https://github.com/litespeedtech/ls-qpack"],
  ["", "lsquic", "MIT AND BSD-3-Clause", "https://github.com/litespeedtech/lsquic"],
  ["mimalloc", "mimalloc", "MIT", "https://github.com/microsoft/mimalloc"],
  ["picohttpparser", "picohttpparser", "MIT", "https://github.com/h2o/picohttpparser"],
  ["zstd", "Zstandard", "BSD-3-Clause", "https://github.com/facebook/zstd"],
  ["", "simdutf", "Apache-2.0", "https://github.com/simdutf/simdutf"],
  ["tinycc", "TinyCC", "LGPL-2.1-only", "https://github.com/TinyCC/tinycc"],
  ["usockets", "uSockets", "Apache-2.0", "https://github.com/uNetworking/uSockets"],
  ["uwebsockets", "uWebSockets", "Apache-2.0", "https://github.com/uNetworking/uWebSockets"],
  ["zlib", "zlib-ng", "Zlib", "https://github.com/zlib-ng/zlib-ng"],
  ["ares", "c-ares", "MIT", "https://github.com/c-ares/c-ares"],
  ["icu", "ICU", "Unicode-3.0", "https://github.com/unicode-org/icu"],
  ["", "base64", "BSD-2-Clause", "https://github.com/aklomp/base64"],
  ["uv", "libuv", "MIT", "https://github.com/libuv/libuv"],
  ["libdeflate", "libdeflate", "MIT", "https://github.com/ebiggers/libdeflate"],
  ["", "libjpeg-turbo", "BSD-3-Clause AND IJG AND Zlib", "https://github.com/libjpeg-turbo/libjpeg-turbo"],
  ["", "libspng", "BSD-2-Clause", "https://github.com/randy408/libspng"],
  ["", "libwebp", "BSD-3-Clause", "https://github.com/webmproject/libwebp"],
  ["", "Highway", "Apache-2.0", "https://github.com/google/highway"],
  ["", "uucode", "MIT", "https://github.com/jacobsandlund/uucode"],
  ["sqlite", "SQLite", "blessing", "https://www.sqlite.org"],
] as const;

/** Bun's executable, which carries the program, and what its authors name as linked into it (their LICENSE.md). */
export const runtimeComponents = (): readonly Component[] => [
  { name: "Bun", version: Bun.version, licence: "MIT", source: "https://github.com/oven-sh/bun" },
  ...linked.map(([key, name, licence, source]) => ({
    name,
    version: (key === "" ? undefined : process.versions[key]) ?? `as in Bun ${Bun.version}`,
    licence,
    source,
  })),
];

/** The exception asks for nothing in a program that is linked with it. */
const gccLicence = "GPL-3.0-or-later WITH GCC-exception-3.1";

/** Of the compilers in build/forward.ts, and their Debian packages. */
const cLibraries = [
  ["linux", "musl", "musl-dev", "MIT", "https://musl.libc.org"],
  ["windows", "mingw-w64 runtime", "mingw-w64-x86-64-dev", "ZPL-2.1", "https://www.mingw-w64.org"],
  ["windows", "libgcc", "gcc-mingw-w64-x86-64-win32-runtime", gccLicence, "https://gcc.gnu.org"],
] as const;

/** What the small program of `forward/` is linked with, where it can be compiled here, and so is in the executables. */
export const smallProgramComponents = (): readonly Component[] =>
  cLibraries
    .filter(([system]) => whyNoSmallProgram(system) === undefined)
    .map(([, name, debianPackage, licence, source]) => {
      const copyright = `/usr/share/doc/${debianPackage}/copyright`;
      const isText = licence !== gccLicence && existsSync(copyright);
      const version = versionOf(debianPackage);
      return { name, version, licence, source, ...(isText ? { text: readFileSync(copyright, "utf8") } : {}) };
    });

function versionOf(debianPackage: string): string {
  try {
    return execFileSync("dpkg-query", ["-W", "-f", `\${Version}`, debianPackage], { encoding: "utf8" });
  } catch {
    return "of the machine that compiled it";
  }
}
