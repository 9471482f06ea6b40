import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** For tests: a directory that is gone when its scope ends. */
export function scratchDir(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "pt-ipam-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
