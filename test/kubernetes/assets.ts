import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Directory, among the programs, of those that have the names of others. */
const containerd17 = "containerd-1.7";

/** The Go modules whose tools these are, each a folder with `go.mod` and `go.sum`. */
export const modules = [
  { folder: import.meta.dirname, module: "k8s.io/kubernetes" },
  { folder: join(import.meta.dirname, "containerd"), module: "github.com/containerd/containerd/v2" },
  { folder: join(import.meta.dirname, containerd17), module: "github.com/containerd/containerd", into: containerd17 },
  { folder: join(import.meta.dirname, "helm"), module: "helm.sh/helm/v3" },
].map(({ folder, module, into = "" }) => {
  const goMod = readFileSync(join(folder, "go.mod"), "utf8");
  const version = new RegExp(`${module} (v\\S+)`).exec(goMod)?.[1] ?? "";
  return { folder, module, into, version, goMod };
});

/** What the linker writes into them: without it kubectl cannot read the server's version. */
export const versionVariables = (version: string): readonly string[] =>
  ["k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"]
    .concat("github.com/containerd/containerd/v2/version.Version", "github.com/containerd/containerd/version.Version")
    .map((name) => `-X ${name}=${version}`);

/** Built programs are kept outside the clone: they cost minutes, and change when a version does. */
export const cacheDirectory = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "pipette");
export const cachePrefix = "kubernetes-";
export const builtDirectory = join(cacheDirectory, `${cachePrefix}${sourceHash()}`);

/** Where they are given, as the custom of `envtest` has it. */
export const givenDirectory = process.env["KUBEBUILDER_ASSETS"] || undefined;

/** The path of one of the programs: `kube-apiserver`, `kubelet`, `kubectl`, `containerd`, `agnhost` … */
export const kubernetesProgram = (name: string): string => join(givenDirectory ?? builtDirectory, name);

/** The versions of containerd that nodes may have: Debian's, and those that are built beside Kubernetes. */
export type ContainerdVersion = "1.6" | "1.7" | "2.2";

/** Where `containerd`, its shim and `ctr` of these versions are. */
export const containerdPrograms: Readonly<Record<ContainerdVersion, string>> = {
  "1.6": "/usr/bin",
  "1.7": kubernetesProgram(containerd17),
  "2.2": kubernetesProgram(""),
};

/** Of an API server's start: seconds, but for a machine that has much else to do. It is only when it is given up. */
export const longestStartMs = 90_000;

/** Why a test that needs such a program cannot run here. */
export function whyNoKubernetes(name: string): string | undefined {
  if (existsSync(kubernetesProgram(name))) return undefined;
  return givenDirectory === undefined
    ? `there is no "${name}": KUBEBUILDER_ASSETS names no directory with it, and "npm run test:kubernetes", which builds it with Go ${oldestGo} or later, has not been here`
    : `there is no "${name}" in "${givenDirectory}", which KUBEBUILDER_ASSETS names (without that variable "npm run test:kubernetes" builds it with Go ${oldestGo} or later)`;
}

/** `1.25`: what the modules ask for. */
export const oldestGo = /^go (\d+\.\d+)/m.exec(modules[0]?.goMod ?? "")?.[1] ?? "";

function sourceHash(): string {
  const hash = createHash("sha256");
  for (const { folder, goMod, version } of modules)
    hash
      .update(goMod)
      .update(readFileSync(join(folder, "go.sum")))
      .update(versionVariables(version).join());
  return hash.digest("hex").slice(0, 16);
}

const antreaBuild =
  "go build -ldflags '-X antrea.io/antrea/v2/pkg/version.Version=v2.8.0' -o bin/antrea-controller ./cmd/antrea-controller";
/** A checkout of Antrea in which that has been run. */
const givenCheckout = process.env["ANTREA_CHECKOUT"];

export const antreaCheckout = (): string => givenCheckout ?? "";

export const antreaController = (): string => join(antreaCheckout(), "bin/antrea-controller");

/** The directory of its definitions. */
export const antreaCrds = (): string => join(antreaCheckout(), "build/charts/antrea/crds");

export function whyNoAntrea(): string | undefined {
  if (givenCheckout !== undefined && existsSync(antreaController())) return undefined;
  return `there is no controller of Antrea's: the variable "ANTREA_CHECKOUT" names no checkout in which this has been run: ${antreaBuild}`;
}
