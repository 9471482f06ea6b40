import { readFileSync } from "node:fs";

/** How many descriptors this process may have open; `undefined` where there is no telling. */
export function descriptorLimit(): number | undefined {
  try {
    const [, most] = /^Max open files +(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return most === undefined ? undefined : Number(most);
  } catch {
    return undefined;
  }
}
