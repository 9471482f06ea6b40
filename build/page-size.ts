import { bundlePage, maxPageBytes } from "../operator/page/bundle-page.ts";

/** `bun run build/page-size.ts`: what the page brings to a browser, file by file; fails where that is too much. */
const { files } = await bundlePage();
const bytes = files.reduce((sum, { gzip }) => sum + gzip.length, 0);
for (const { path, gzip } of files) console.log(`${String(gzip.length).padStart(6)}  ${path}`);
console.log(`${bytes} bytes compressed, of at most ${maxPageBytes}`);
