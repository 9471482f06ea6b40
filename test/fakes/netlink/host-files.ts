import { present } from "./kernel.ts";

/**
 * Files below /proc/sys of the node in memory, for what reads and writes them by `node:fs`:
 * `vi.mock(import("node:fs"), async (original) => hostFiles(await original()) as never);`
 */
export function hostFiles(real: typeof import("node:fs")) {
  const isSysctl = (path: unknown): path is string => typeof path === "string" && path.startsWith("/proc/sys/");
  return {
    ...real,
    readFileSync(path: string, ...rest: readonly unknown[]): unknown {
      if (!isSysctl(path)) return (real.readFileSync as (...args: readonly unknown[]) => unknown)(path, ...rest);
      const value = present.node.own.sysctls.get(path);
      if (value === undefined) throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
      return `${value}\n`;
    },
    writeFileSync(path: string, value: string, ...rest: readonly unknown[]): void {
      if (!isSysctl(path)) (real.writeFileSync as (...args: readonly unknown[]) => void)(path, value, ...rest);
      else if (present.node.own.sysctls.has(path)) present.node.own.sysctls.set(path, value);
      else throw Object.assign(new Error("ENOENT"), { code: "ENOENT" });
    },
    accessSync(path: string, ...rest: readonly unknown[]): void {
      if (!isSysctl(path)) (real.accessSync as (...args: readonly unknown[]) => void)(path, ...rest);
    },
  };
}
