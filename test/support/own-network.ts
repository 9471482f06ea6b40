import { spawnSync } from "node:child_process";

/** Set inside, so that the second start knows that it is there. */
const marker = "PIPETTE_OWN_NETWORK";

/**
 * Runs this program once more in a network and mount namespace of its own, where it is the node: the
 * machine's interfaces, rules and files under /run stay untouched, and everything goes with the last
 * process. Without root a user namespace gives the rights.
 * @returns the exit status of that run; `undefined` when this already is that run
 */
export function runInside(): number | undefined {
  if (process.env[marker] !== undefined) return undefined;
  const asRoot = process.getuid?.() === 0;
  const namespaces = asRoot ? ["--net", "--mount"] : ["--user", "--map-root-user", "--net", "--mount"];
  const probe = spawnSync("unshare", [...namespaces, "true"], { encoding: "utf8" });
  if (probe.status !== 0) {
    const reason = (probe.stderr || String(probe.error ?? "")).trim();
    console.error(
      `Cannot start: this machine gives no network namespace of its own (${reason}), wanted root or unprivileged user namespaces`,
    );
    return 1;
  }
  // Names of network namespaces are mounts below /run/netns: a file system of its own forgets them.
  const inner = 'mount -t tmpfs tmpfs /run && mkdir /run/netns && exec "$@"';
  const program = [process.execPath, ...process.argv.slice(1)];
  const path = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
  const run = spawnSync("unshare", [...namespaces, "sh", "-c", inner, "sh", ...program], {
    stdio: "inherit",
    env: { ...process.env, PATH: path, [marker]: "1" },
  });
  return run.status ?? 1;
}
