import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";

/** Set inside, so that the second start knows that it is there. */
const marker = "PIPETTE_OWN_NETWORK";
const ownNamespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

export const isInside = (): boolean => process.env[marker] !== undefined;

/**
 * Runs this program once more in namespaces of its own, where it is the node: the machine's interfaces, rules and
 * files under /run stay untouched, and when this process ends or is asked to end, everything that it started ends. Its
 * temporary directory goes too. Without root a user namespace gives the rights.
 * @param endEarly what the program does when it is asked to end; asked twice, or without this, it ends at once
 * @returns the exit status of that run; `undefined` when this already is that run
 */
export async function runInside(endEarly?: () => void): Promise<number | undefined> {
  if (isInside()) {
    // The first process of a process namespace receives only signals that it handles.
    for (const signal of ["SIGINT", "SIGTERM"] as const)
      process.on(signal, endEarly ?? (() => process.exit(statusAfter(signal))));
    return undefined;
  }
  const asRoot = process.getuid?.() === 0;
  const namespaces = asRoot ? ownNamespaces : ["--user", "--map-root-user", ...ownNamespaces];
  const probe = spawnSync("unshare", [...namespaces, "true"], { encoding: "utf8" });
  if (probe.status !== 0) {
    const reason = (probe.stderr || String(probe.error ?? "")).trim();
    console.error(
      `Cannot start: this machine gives no network namespace of its own (${reason}), wanted root or unprivileged user namespaces`,
    );
    return 1;
  }
  const scratch = mkdtempSync(join(tmpdir(), "pipette-"));
  try {
    return await runIn(namespaces, scratch, endEarly === undefined ? "at once" : "by itself");
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function runIn(namespaces: readonly string[], scratch: string, ends: "at once" | "by itself"): Promise<number> {
  // Names of network namespaces are mounts below /run/netns: a file system of its own forgets them.
  const inner = 'mount -t tmpfs tmpfs /run && mkdir /run/netns && exec "$@"';
  const path = `${process.env["PATH"] ?? ""}:/usr/sbin:/sbin`;
  // A terminal's Ctrl-C goes to everything that runs in its session: one that is to end by itself needs what it has started.
  const apart = ends === "by itself" ? ["setsid"] : [];
  const program = [...apart, process.execPath, ...process.argv.slice(1)];
  const run = Bun.spawn(["unshare", ...namespaces, "sh", "-c", inner, "sh", ...program], {
    stdio: ["inherit", "inherit", "inherit"],
    env: { ...process.env, PATH: path, TMPDIR: scratch, [marker]: "1" },
  });
  let asked = false;
  let stopped: number | undefined;
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (ends === "by itself" && !asked) {
        asked = true;
        process.kill(firstInside(run.pid), signal);
        return;
      }
      stopped ??= statusAfter(signal);
      run.kill("SIGKILL");
    });
  }
  const status = await run.exited;
  return stopped ?? status;
}

/** `unshare` waits for its child and passes no signal on. */
const firstInside = (pid: number): number => Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim());

/** As a shell says that a signal ended a program. */
const statusAfter = (signal: "SIGINT" | "SIGTERM"): number => 128 + constants.signals[signal];
