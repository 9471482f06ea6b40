import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";

/** How the sources of `ui/` become the files that a browser gets. */

/** One of them. */
export interface PageFile {
  /** As it is asked for; the name of all but the first page has the hash of the content in it. */
  readonly path: string;
  readonly contentType: string;
  /** Compressed. */
  readonly gzip: Uint8Array;
}

export interface BundledPage {
  readonly files: readonly PageFile[];
  /** Paths of what is in it, from the working directory: for the list of licences. */
  readonly inputs: readonly string[];
}

/** Of all files together, compressed: what a port-forward through a thin line brings within a second. */
export const maxPageBytes = 60 * 1024;

const entry = fileURLToPath(new URL("../../ui/main.tsx", import.meta.url));

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** @throws where the sources do not bundle, or are too large */
export async function bundlePage(): Promise<BundledPage> {
  const { outputs, metafile } = await Bun.build({
    entrypoints: [entry],
    target: "browser",
    minify: true,
    metafile: true,
    define: { "process.env.NODE_ENV": '"production"' },
    jsx: { runtime: "automatic", development: false, importSource: "preact" },
  });
  const named = await Promise.all(
    outputs.map(async (output) => {
      const kind = output.path.endsWith(".css") ? "css" : "js";
      const bytes = new Uint8Array(await output.arrayBuffer());
      const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
      return { path: `/${hash}.${kind}`, kind, contentType: types[kind] ?? "", gzip: compressed(bytes) };
    }),
  );
  const index = indexOf(pathOf(named, "css"), pathOf(named, "js"));
  const first = {
    path: "/",
    contentType: "text/html; charset=utf-8",
    gzip: compressed(new TextEncoder().encode(index)),
  };
  const files = [first, ...named.map(({ path, contentType, gzip }) => ({ path, contentType, gzip }))];
  const bytes = files.reduce((sum, { gzip }) => sum + gzip.length, 0);
  if (bytes > maxPageBytes)
    throw new Error(`Cannot bundle the page: it has ${bytes} bytes compressed, wanted at most ${maxPageBytes}`);
  return { files, inputs: Object.values(metafile?.outputs ?? {}).flatMap(({ inputs }) => Object.keys(inputs)) };
}

const compressed = (bytes: Uint8Array): Uint8Array => Bun.gzipSync(new Uint8Array(bytes), { level: 9 });

function pathOf(files: readonly { readonly path: string; readonly kind: string }[], kind: string): string {
  const found = files.filter((file) => file.kind === kind);
  if (found.length !== 1)
    throw new Error(`Cannot bundle the page: it has ${found.length} files of ${kind}, wanted one`);
  return found[0]?.path ?? "";
}

const indexOf = (css: string, js: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Pipette</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${css}">
<script type="module" src="${js}"></script>
</head>
<body><div id="page"></div><noscript>This page needs JavaScript; the same is told by "pipette get" and "pipette status".</noscript></body>
</html>
`;
