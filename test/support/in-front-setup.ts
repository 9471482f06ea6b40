import { mkdirSync, rmSync } from "node:fs";
import { compileSmallProgram } from "../../build/forward.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { compiledBuildId } from "./forward-client.ts";
import { frontDirectory, template } from "./in-front.ts";

/** Called by vitest before the first test file of a project in front of whose plugins the small program stands. */
export async function setup(): Promise<void> {
  teardown();
  mkdirSync(frontDirectory, { recursive: true });
  compileExecutables();
  const buildId = compiledBuildId().toHex();
  await compileSmallProgram({ system: "linux", outfile: template.path, buildId, places: template.places });
}

/** Called by vitest behind the last one. */
export function teardown(): void {
  rmSync(frontDirectory, { recursive: true, force: true });
}
