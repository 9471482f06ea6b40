import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { ExecaError, execa } from "execa";
import { openLockFile } from "../../ipam/host-local/lock.linux.ts";
import { reasonOf } from "../../shared/reason.ts";
import { builtDirectory, cacheDirectory, cachePrefix, givenDirectory, modules, versionVariables } from "./assets.ts";
import { newEnoughGo } from "./go.ts";

/**
 * Sees to the programs of a real Kubernetes: those that KUBEBUILDER_ASSETS names, else built from Go's modules into the
 * user's cache, once for each state of `go.mod` and `go.sum`. About five minutes of two cores where nothing is there yet.
 */

/** Of a cold build on a machine that does other things too; what lands a change has 90 minutes for everything. */
const longestBuildMs = 45 * 60_000;
const until = performance.now() + longestBuildMs;

const say = (text: string): void => console.error(text);

if (givenDirectory !== undefined) say(`Kubernetes is what KUBEBUILDER_ASSETS names: "${givenDirectory}"`);
else if (!existsSync(builtDirectory)) await buildOnce().catch(giveUp);

function giveUp(caught: unknown): never {
  // The compiler's last words say whether it is the network, the disk or the module.
  const [reason, last] =
    caught instanceof ExecaError ? [caught.shortMessage, String(caught.stderr).slice(-1000)] : [reasonOf(caught), ""];
  say(`Cannot build Kubernetes: ${reason}\n${last}`.trim());
  process.exit(1);
}

/** Of two at once the second waits, and finds what the first has made. The lock ends with its process. */
async function buildOnce(): Promise<void> {
  mkdirSync(cacheDirectory, { recursive: true });
  const lock = await openLockFile(join(cacheDirectory, `${cachePrefix}lock`));
  while (!lock.tryLock()) {
    if (performance.now() > until) throw new Error("somebody else has been at it for too long");
    await Bun.sleep(500);
  }
  if (!existsSync(builtDirectory)) await build();
  lock.close();
}

async function build(): Promise<void> {
  const go = await newEnoughGo();
  const making = mkdtempSync(join(cacheDirectory, `${cachePrefix}making-`));
  try {
    for (const { folder, module, into, version } of modules) {
      say(`Building ${module} ${version}, which takes some minutes`);
      const ldflags = ["-s", "-w", ...versionVariables(version)].join(" ");
      const words = ["-n", "5", go, "build", "-trimpath", "-ldflags", ldflags, "-o", `${join(making, into)}/`, "tool"];
      const env = { CGO_ENABLED: "0", GOFLAGS: "-mod=readonly", GOTOOLCHAIN: "local", GOWORK: "off" };
      await execa("nice", words, { cwd: folder, env, timeout: until - performance.now() });
    }
    renameSync(making, builtDirectory);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
  // Programs of other versions, and what was left by builds that were killed.
  const kept = [basename(builtDirectory), `${cachePrefix}lock`];
  for (const name of readdirSync(cacheDirectory))
    if (name.startsWith(cachePrefix) && !kept.includes(name))
      rmSync(join(cacheDirectory, name), { recursive: true, force: true });
}
