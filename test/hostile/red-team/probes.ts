import type { Kernel, Site } from "./sites/site.ts";

/** What a kernel or a switch believes, a line each. */
export type Beliefs = ReadonlySet<string>;

interface Neighbour {
  readonly dst: string;
  readonly dev: string;
  readonly lladdr?: string;
}

/** Lifetimes pass; whatever else changes has been changed. */
const steady = (line: string): string => line.replace(/ (expires|valid_lft|preferred_lft) \S+/g, "").trim();

/** Routes, addresses and neighbours of all kernels, and what links and switches have learned. */
export async function beliefsOf(site: Site): Promise<Beliefs> {
  const [learned, ...kernels] = await Promise.all([site.learned(), ...site.kernels.map(beliefsOfKernel)]);
  return new Set([...kernels.flat(), ...learned]);
}

async function beliefsOfKernel({ name, namespace }: Kernel): Promise<readonly string[]> {
  const [routes, routes6, addresses, neighbours] = await Promise.all([
    namespace.run("ip -4 -o route show table all"),
    namespace.run("ip -6 -o route show table all"),
    namespace.run("ip -o addr show"),
    namespace.run("ip -j neigh show"),
  ]);
  const lines = (text: string): readonly string[] => text.split("\n").filter((line) => line.trim() !== "");
  const known: readonly Neighbour[] = JSON.parse(neighbours);
  return [
    ...[...lines(routes), ...lines(routes6)].map((line) => `${name} route: ${steady(line)}`),
    ...lines(addresses).map((line) => `${name} address: ${steady(line).replace(/\\.*| tentative/g, "").trim()}`),
    ...known.map(({ dst, dev, lladdr }) => `${name} neighbour: ${dst} on ${dev} is ${lladdr ?? "nowhere"}`),
  ];
}

/** What is new, and what is gone but for neighbours, which are forgotten in time. */
export function changes(before: Beliefs, after: Beliefs): readonly string[] {
  const come = [...after].filter((line) => !before.has(line)).map((line) => `new: ${line}`);
  const gone = [...before].filter((line) => !after.has(line) && / (route|address): /.test(line));
  return [...come, ...gone.map((line) => `gone: ${line}`)];
}
