import { existsSync } from "node:fs";
import { builtDirectory } from "../test/kubernetes/assets.ts";

/** What renders the chart, of Helm 3 or 4: given, installed, or built with the Kubernetes of the tests. */
export function findHelm(): string | undefined {
  const built = `${builtDirectory}/helm`;
  return process.env["HELM"] ?? Bun.which("helm") ?? (existsSync(built) ? built : undefined);
}
