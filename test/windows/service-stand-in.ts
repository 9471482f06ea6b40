import { readFileSync, writeFileSync } from "node:fs";
import { compileExecutable } from "../../build/bundle.ts";

/** Compiles `service-program.ts` into this directory; answers the executable's path. */
export async function compileStandIn(directory: string): Promise<string> {
  const outfile = `${directory}/stand-in.exe`;
  const entry = new URL("service-program.ts", import.meta.url).pathname;
  await compileExecutable({ entry, base: "bun-windows-x64", outfile });
  return outfile;
}

/** Another release of the same program: text that only DOS would show is another. */
export function anotherRelease(executable: string, path: string): void {
  const bytes = readFileSync(executable);
  const at = bytes.indexOf("DOS mode");
  if (at < 0) throw new Error(`Cannot change "${executable}": it has no DOS header, wanted an executable of Windows`);
  bytes.write("dos MODE", at);
  writeFileSync(path, bytes, { mode: 0o755 });
}
