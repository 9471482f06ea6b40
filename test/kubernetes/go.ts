import { globSync } from "node:fs";
import { execa } from "execa";
import { oldestGo } from "./assets.ts";

/** Debian 12's own is too old, and may be the first of the PATH. */
export async function newEnoughGo(): Promise<string> {
  const [wantedMajor = 0, wantedMinor = 0] = oldestGo.split(".").map(Number);
  for (const go of ["go", "/usr/local/go/bin/go", ...globSync("/usr/lib/go-*/bin/go")]) {
    const { stdout } = await execa(go, ["env", "GOVERSION"], { reject: false, env: { GOTOOLCHAIN: "local" } });
    const [, major, minor] = /^go(\d+)\.(\d+)/.exec(stdout ?? "") ?? [];
    if (Number(major) === wantedMajor && Number(minor) >= wantedMinor) return go;
  }
  throw new Error(`there is no Go here, wanted ${oldestGo} or later`);
}
