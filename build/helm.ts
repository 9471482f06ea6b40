import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** What renders the chart; of Helm 3, whose charts Helm 4 takes as well. */
export function findHelm(): string | undefined {
  const built = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "pipette/kubernetes/helm");
  return process.env["HELM"] ?? Bun.which("helm") ?? (existsSync(built) ? built : undefined);
}
