import type { Budget } from "../budgets.ts";
import type { Launched, Launcher } from "../launch/launcher.ts";
import type { CacheState } from "../page-cache.ts";
import { runTimed, verbEnv } from "../plugin-process.ts";
import { makeNamespaces, type Namespace, removeNamespaces, type Side } from "../pods.ts";
import { compareInBothStates, type Row } from "../row.ts";
import type { Setting } from "../setting.ts";
import { summarize } from "../stats.ts";

const verbs = ["ADD", "DEL"] as const;
type PodVerb = (typeof verbs)[number];

interface VerbsOptions {
  readonly measure: string;
  readonly ours: Side;
  readonly peer: Side;
  readonly both: Budget;
  /** Of an ADD alone. */
  readonly add?: Budget;
  readonly heldIn?: readonly CacheState[];
  /** Executables that the sides start themselves. */
  readonly started: readonly string[];
}

/** Both verbs of a pod together, and each alone. @param heard is told of each call of ours */
export async function measureVerbs(
  { rounds, launcher }: Pick<Setting, "rounds" | "launcher">,
  { measure, ours, peer, both, add, heldIn, started }: VerbsOptions,
  heard: (call: Launched) => void = () => undefined,
): Promise<Row[]> {
  const peerName = "bridge + host-local";
  const times = { ours: noTimes(), peer: noTimes() };
  const made: Namespace[] = [];
  const one = (who: "ours" | "peer", side: Side) => async (): Promise<number> => {
    const [namespace] = await makeNamespaces(`${who}-${made.length}`, 1);
    if (namespace !== undefined) made.push(namespace);
    return verbs.reduce((sum, verb) => {
      const call = timedVerb(launcher, side, verb, namespace);
      if (who === "ours") heard(call);
      times[who][verb].push(call.ms);
      return sum + call.ms;
    }, 0);
  };
  const alone = (verb: PodVerb): Row => {
    // The first round warms up.
    const [own, others] = [times.ours, times.peer].map((side) => summarize(side[verb].splice(0).slice(1)));
    if (own === undefined || others === undefined) throw new Error("Broken invariant: there are two sides");
    const held = verb === "ADD" && add !== undefined ? add : {};
    const value = own.median / others.median;
    return { measure: `  ${verb} alone`, unit: "ratio", ...held, ours: own, peer: others, peerName, value };
  };
  try {
    return await compareInBothStates(
      {
        measure,
        ...both,
        ...(heldIn === undefined ? {} : { heldIn }),
        rounds,
        ours: one("ours", ours),
        peer: one("peer", peer),
        peerName,
        executables: [ours.executable, peer.executable, ...started],
      },
      () => verbs.map(alone),
    );
  } finally {
    await removeNamespaces(made);
  }
}

const noTimes = (): Readonly<Record<PodVerb, number[]>> => ({ ADD: [], DEL: [] });

/** One call. */
export function timedVerb(
  launcher: Launcher,
  { executable, conf, path }: Side,
  verb: PodVerb,
  namespace: Namespace | undefined,
): Launched {
  if (namespace === undefined) throw new Error("Cannot measure a pod: there are fewer namespaces than rounds");
  const env = verbEnv(verb, namespace.id, namespace.path, path);
  return runTimed(launcher, { executable, conf: JSON.stringify(conf), env });
}
