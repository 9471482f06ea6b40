import { existsSync } from "node:fs";
import { join } from "node:path";

/** A real API server, where `envtest` would look for it. */
export const apiServerProgram = join(
  process.env["KUBEBUILDER_ASSETS"] ?? "/usr/local/kubebuilder/bin",
  "kube-apiserver",
);

export const whyNoApiServer = (): string | undefined =>
  existsSync(apiServerProgram)
    ? undefined
    : `"${apiServerProgram}" is missing (KUBEBUILDER_ASSETS names the directory with the API server of Kubernetes)`;
