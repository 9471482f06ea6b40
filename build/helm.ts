import { existsSync } from "node:fs";
import { builtDirectory } from "../test/kubernetes/assets.ts";

/**
 * The Helm (3 or 4) that renders the chart: named by a variable, installed, or built with the Kubernetes of the tests.
 */
export function findHelm(): string | undefined {
  const built = `${builtDirectory}/helm`;
  return process.env["HELM"] ?? Bun.which("helm") ?? (existsSync(built) ? built : undefined);
}
