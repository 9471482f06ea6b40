import type { NetworkNamespace } from "../../../support/network-namespace.ts";
import { Attack } from "../attack.ts";
import type { Site } from "../sites/site.ts";
import { nameOf } from "../world.ts";

/** Of each frame "rule at place" for every rule that it broke where it arrived. */
export async function brokenBy(site: Site, frames: readonly Uint8Array[]): Promise<readonly (readonly string[])[]> {
  using attack = await Attack.begin(site, 1);
  const broken: (readonly string[])[] = [];
  for (const frame of frames) {
    const judged = await attack.replay([frame]);
    const lines = judged.flatMap(({ rule, place }) => (rule === undefined ? [] : [`${rule} at ${nameOf(place)}`]));
    broken.push([...new Set(lines)].sort());
  }
  return broken;
}

export const found = async (site: Site, frame: Uint8Array): Promise<readonly string[]> =>
  (await brokenBy(site, [frame]))[0] ?? [];

/** "rule at who" for what a frame made somebody believe, whoever it may have cut off. */
export async function believed(site: Site, frame: Uint8Array): Promise<readonly string[]> {
  using attack = await Attack.begin(site, 1);
  await attack.replay([frame]).catch(() => undefined);
  await attack.look();
  return attack.outcome.findings.flatMap(({ rule, place, change }) =>
    change === undefined ? [] : [`${rule} at ${place}`],
  );
}

/** Takes back what a router advertisement has configured. */
export async function forgetRouters(namespace: NetworkNamespace, before: readonly string[]): Promise<void> {
  await namespace.run("ip -6 route flush proto ra");
  await namespace.run("ip -6 addr flush dynamic");
  // Where a router has come beside one that there was, the kernel has them as one route, and both are gone.
  for (const route of before) await namespace.run(`ip -6 route replace ${route}`);
}

/** The routes to the world of a namespace, in `ip`'s words. */
export async function waysOut(namespace: NetworkNamespace): Promise<readonly string[]> {
  const routes = (await namespace.run("ip -6 route show default")).split("\n").filter((line) => line !== "");
  return routes.map((route) => route.replace(/ pref \w+/, "").trim());
}

/** Takes the agent's packet rules out of a node's kernel, which would keep a hole in the switch from showing. */
export async function withoutPacketRules(
  namespace: NetworkNamespace,
): Promise<{ readonly putBack: () => Promise<unknown> }> {
  const saved = await namespace.run("nft list ruleset");
  const tables = (await namespace.run("nft list tables")).split("\n").filter((line) => line.includes("pipette"));
  for (const table of tables) await namespace.run(`nft delete ${table}`);
  return { putBack: () => namespace.run("nft -f -", `flush ruleset\n${saved}`) };
}
