import { summarize } from "../../bench/stats.ts";

/** What is looked at in a quiet moment, when no call runs. */
export interface Sample {
  readonly seconds: number;
  readonly residentMb: number;
  readonly descriptors: number;
  readonly threads: number;
  readonly databaseKb: number;
}

export type Measure = Exclude<keyof Sample, "seconds">;

/** How one measure went over a stretch in which the agent was one process. */
export interface Growth {
  readonly of: Measure;
  /** Medians of the stretch's first and last third. */
  readonly first: number;
  readonly last: number;
  readonly perHour: number;
  readonly grows: boolean;
}

/**
 * What a measure may rise by without growing. A heap breathes: over 40,000 calls the agent's memory went up and down by
 * 25 MB five times, with the same lowest points. A connection may be open at the moment of the look.
 */
const slack: Readonly<Record<Measure, (usual: number) => number>> = {
  residentMb: (usual) => 8 + usual / 3,
  descriptors: () => 3,
  threads: () => 3,
  databaseKb: (usual) => 512 + usual / 2,
};

/** A young process' heap fills for minutes, the faster the more it is asked; a shorter stretch says nothing about it. */
const memoryTellsAfterS = 600;
/** Below this many looks a third of them says nothing. */
const fewestSamples = 9;
/** A part of the stretch in which caches fill and code is compiled. */
const warmUp = 0.25;

/**
 * Growth is what goes up all the time: both the line through all looks and the medians of its ends have to say so.
 * A single high look says nothing.
 * @returns nothing where there were too few looks
 */
export function growthOf(stretch: readonly Sample[]): readonly Growth[] {
  const samples = stretch.slice(Math.floor(stretch.length * warmUp));
  if (samples.length < fewestSamples) return [];
  const third = Math.floor(samples.length / 3);
  const lasts = (samples.at(-1)?.seconds ?? 0) - (samples[0]?.seconds ?? 0);
  return (Object.keys(slack) as Measure[]).map((of) => {
    const first = middle(samples.slice(0, third).map((sample) => sample[of]));
    const last = middle(samples.slice(-third).map((sample) => sample[of]));
    const perSecond = slope(samples, of);
    const allowed = slack[of](first);
    const tells = of !== "residentMb" || lasts >= memoryTellsAfterS;
    const grows = tells && perSecond * lasts > allowed && last - first > allowed / 2;
    return { of, first, last, perHour: perSecond * 3600, grows };
  });
}

/** The median of the slopes between any two looks, which a few strange ones do not bend. */
function slope(samples: readonly Sample[], of: Measure): number {
  const slopes = samples.flatMap((a, i) =>
    samples.slice(i + 1).flatMap((b) => (b.seconds > a.seconds ? [(b[of] - a[of]) / (b.seconds - a.seconds)] : [])),
  );
  return slopes.length === 0 ? 0 : middle(slopes);
}

const middle = (values: readonly number[]): number => summarize(values).median;
