import { type Belief, beliefsOf, type Change, keyOf, tracesOf } from "./beliefs.ts";
import type { Shot } from "./grammar/frames.ts";
import { brokenByItself } from "./model.ts";
import { parseFrame } from "./parse.ts";
import type { Site } from "./sites/site.ts";

/**
 * The smallest frame that brings a change about. Those that speak of what changed are sent again, more and more of them
 * in the order of their size, each time after the change was taken back. Where it cannot be taken back, or does not
 * come again: the smallest that speaks of it.
 * @param send sends them and waits until everybody has had them
 */
export async function culpritOf(
  site: Site,
  change: Change,
  shots: readonly Shot[],
  send: (shots: readonly Shot[]) => Promise<void>,
): Promise<Shot | undefined> {
  const traces = tracesOf(change);
  const speaking = shots
    .filter(({ bytes }) => {
      if (change.belief.kind === "heard") return brokenByItself(site.world, parseFrame(bytes)) === "loopback";
      const digits = Buffer.from(bytes).toString("hex");
      return traces.some((trace) => digits.includes(trace));
    })
    .sort((a, b) => a.bytes.length - b.bytes.length);
  const causedBy = async (some: readonly Shot[]): Promise<boolean> => {
    if (!(await takenBack(site, change.belief))) return false;
    await send(some);
    return (await beliefsOf(site)).some((belief) => keyOf(belief) === keyOf(change.belief));
  };
  if (!(await causedBy(speaking))) return speaking[0];
  // As many of the smallest do not bring it about, and as many do.
  let [few, enough] = [0, speaking.length];
  while (enough - few > 1) {
    const half = (few + enough) >> 1;
    if (await causedBy(speaking.slice(0, half))) enough = half;
    else few = half;
  }
  return speaking[enough - 1];
}

/** Whether what came to be could be taken away; what was lost is not put back. */
async function takenBack(site: Site, belief: Belief): Promise<boolean> {
  const kernel = site.kernels.find(({ name }) => name === belief.who);
  const command = undoing(belief);
  if (kernel === undefined || command === undefined) return false;
  await kernel.namespace.run(command).catch(() => undefined);
  return !(await beliefsOf(site)).some((other) => keyOf(other) === keyOf(belief));
}

function undoing({ kind, text, ifname }: Belief): string | undefined {
  const [first = "", second = "", , ip = ""] = text.split(/\s+/);
  if (kind === "neighbour") return `ip neigh del ${first} dev ${ifname}`;
  if (kind === "route") return `ip ${text.includes(":") ? "-6" : "-4"} route del ${text}`;
  // "5: eth0 inet6 fd00::1/64 scope global"
  return kind === "address" ? `ip addr del ${ip} dev ${second}` : undefined;
}
