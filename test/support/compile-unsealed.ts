import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compileExecutable } from "../../build/bundle.ts";

const main = fileURLToPath(new URL("../../main.ts", import.meta.url));

/** The executable as delivered, except that it obeys Bun's own variables; for a test that needs one of them. */
export async function compileUnsealed(directory: string, name: "pipette" | "pipette-ipam"): Promise<string> {
  const outfile = join(directory, name);
  await compileExecutable({ entry: main, base: "bun-linux-x64", outfile, unsealed: true });
  return outfile;
}
