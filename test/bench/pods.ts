import { rmSync } from "node:fs";
import { execa } from "execa";
import { verbEnv } from "./plugin-process.ts";

/** A main plugin with its configuration: one side of a comparison of whole pods. */
export interface Side {
  readonly executable: string;
  readonly conf: Readonly<Record<string, unknown>>;
  /** CNI_PATH. */
  readonly path: string;
}

export interface CrowdOutcome {
  /** From the first start to the last end. */
  readonly ms: number;
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

/** One verb for every namespace, all started at once: by one loop with nothing else in it, since a runtime has a thread for each. */
export async function crowd(side: Side, verb: "ADD" | "DEL", namespaces: readonly Namespace[]): Promise<CrowdOutcome> {
  const { executable, conf, path } = side;
  const stdin = new TextEncoder().encode(JSON.stringify(conf));
  const started = performance.now();
  const children = namespaces.map((namespace) =>
    Bun.spawn([executable], {
      env: verbEnv(verb, namespace.id, namespace.path, path),
      stdin,
      stdout: "pipe",
      stderr: "ignore",
    }),
  );
  const statuses = await Promise.all(children.map((child) => child.exited));
  const ms = performance.now() - started;
  const texts = await Promise.all(children.map((child) => child.stdout.text()));
  const good = texts.filter((_, i) => statuses[i] === 0);
  const addresses = verb === "ADD" ? good.flatMap(addressesOf) : [];
  return { ms, lost: texts.length - good.length, doubled: addresses.length - new Set(addresses).size };
}

const addressesOf = (stdout: string): string[] =>
  (JSON.parse(stdout) as { ips: { address: string }[] }).ips.map(({ address }) => address);
