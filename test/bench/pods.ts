import { rmSync } from "node:fs";
import { execa } from "execa";
import type { Launcher } from "./launch/launcher.ts";
import { verbEnv } from "./plugin-process.ts";

/** A main plugin with its configuration: one side of a comparison of whole pods. */
export interface Side {
  readonly executable: string;
  readonly conf: Readonly<Record<string, unknown>>;
  /** CNI_PATH. */
  readonly path: string;
}

/**
 * What an agent that is measured has in its configuration beside its network. It looks for what plugins left as often as
 * on a node, and not as those do whose tests wait for it: what each look leaves to the garbage collector would count as
 * its memory.
 */
export const asInstalled = { logLevel: "info", janitorIntervalMs: undefined } as const;

export interface CrowdOutcome {
  /** From the first start to the last end. */
  readonly ms: number;
  /** What each call took. */
  readonly each: readonly number[];
  /** Calls that failed. */
  readonly lost: number;
  /** Addresses that were given out twice. */
  readonly doubled: number;
}

export interface Namespace {
  readonly id: string;
  readonly path: string;
}

/** Fresh namespaces: not part of what is measured, because the runtime makes them. */
export async function makeNamespaces(prefix: string, count: number): Promise<Namespace[]> {
  const made: Namespace[] = [];
  for (let i = 0; i < count; i++) {
    const id = `${prefix}-${i}`;
    await execa("ip", ["netns", "add", id]);
    made.push({ id, path: `/run/netns/${id}` });
  }
  return made;
}

export async function removeNamespaces(namespaces: readonly Namespace[]): Promise<void> {
  for (const { id, path } of namespaces) {
    await execa("ip", ["netns", "del", id]);
    rmSync(path, { force: true });
  }
}

/** One verb for every namespace, all started at once. */
export function crowd(
  launcher: Launcher,
  side: Side,
  verb: "ADD" | "DEL",
  namespaces: readonly Namespace[],
): CrowdOutcome {
  const { ms, each } = launcher.run({
    program: [side.executable],
    env: verbEnv(verb, "", "", side.path),
    stdin: JSON.stringify(side.conf),
    namespaces: namespaces.map(({ id }) => id),
  });
  const good = each.filter(({ status }) => status === 0);
  const addresses = verb === "ADD" ? good.flatMap(({ stdout }) => addressesOf(stdout)) : [];
  return {
    ms,
    each: each.map((call) => call.ms),
    lost: each.length - good.length,
    doubled: addresses.length - new Set(addresses).size,
  };
}

const addressesOf = (stdout: string): string[] =>
  (JSON.parse(stdout) as { ips: { address: string }[] }).ips.map(({ address }) => address);
