/** What one long run came to, as `runs.jsonl` keeps it: a line each. */
export type Run = SoakRun | StormRun | FuzzRun | KillRun;

interface When {
  /** The day on which it ended: YYYY-MM-DD. */
  readonly date: string;
  /** What else the machine did, where somebody noted it. */
  readonly machine?: string;
}

export interface SoakRun extends When {
  readonly of: "soak";
  readonly dataPath: string;
  readonly seed: number;
  readonly minutes: number;
  readonly calls: number;
  readonly faults: number;
  readonly faultKinds?: number;
  /** How often everything that has to hold was looked at. */
  readonly looks?: number;
  readonly wrong: number;
  /** The longest call of each verb, in milliseconds. */
  readonly longestMs: Readonly<Record<string, number>>;
}

export interface StormRun extends When {
  readonly of: "storm";
  readonly storm: string;
  readonly who: string;
  readonly seconds: number;
  /** Calls that were late or failed, addresses given twice. Absent: a peer's, which was not judged. */
  readonly wrong?: number;
  readonly verbs: readonly {
    readonly verb: string;
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  }[];
}

export interface FuzzRun extends When {
  readonly of: "fuzz";
  /** Of several runs that are counted together, all their seeds. */
  readonly seed: number | string;
  readonly boundary: string;
  readonly inputs: number;
  readonly branches?: number;
  readonly defects: number;
}

/** Kills at every step of a call (`PIPETTE_KILL=all`), noted by hand. */
export interface KillRun extends When {
  readonly of: "kill";
  /** Who, in which call, and how. */
  readonly what: string;
  readonly tried: number;
  readonly steps: number;
}

/** A line that `npm run soak`, `bench:storms` or `fuzz` has appended to the file of its `--json`. */
type Line = Readonly<Record<string, unknown>> & { readonly date: string };

/**
 * Takes of such a line what the page shows.
 * @throws where it is of none of these programs
 */
export function runOf(line: string): Run {
  const said = JSON.parse(line) as Line;
  const date = said.date.slice(0, 10);
  if ("looks" in said) return { of: "soak", date, ...soakFigures(said as unknown as SoakLine) };
  if ("storm" in said) return { of: "storm", date, ...stormFigures(said as unknown as StormLine) };
  if ("boundary" in said) return { of: "fuzz", date, ...fuzzFigures(said as unknown as FuzzRun) };
  throw new Error(`Cannot take a run over: "${line.slice(0, 60)}" is of no soak, storm or fuzz`);
}

type SoakLine = Omit<SoakRun, "faults" | "wrong"> & {
  readonly seconds: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly wrong: readonly string[];
  readonly verbs: StormRun["verbs"];
};

function soakFigures({ dataPath, seed, seconds, calls, faults, looks, wrong, verbs }: SoakLine) {
  const counts = Object.values(faults);
  return {
    dataPath,
    seed,
    minutes: Math.round(seconds / 6) / 10,
    calls,
    faults: counts.reduce((sum, n) => sum + n, 0),
    faultKinds: counts.length,
    ...(looks === undefined ? {} : { looks }),
    wrong: wrong.length,
    longestMs: Object.fromEntries(verbs.map(({ verb, max }) => [verb, Math.round(max)])),
  };
}

type StormLine = Omit<StormRun, "of" | "wrong"> & { readonly of: string; readonly wrong: readonly string[] };

function stormFigures({ storm, of, seconds, verbs, wrong }: StormLine) {
  const inMs = verbs.map(({ verb, p50, p99, max }) => ({
    verb,
    p50: Math.round(p50),
    p99: Math.round(p99),
    max: Math.round(max),
  }));
  return { storm, who: of, seconds: Math.round(seconds * 10) / 10, wrong: wrong.length, verbs: inMs };
}

const fuzzFigures = ({ seed, boundary, inputs, branches = 0, defects }: FuzzRun) => ({
  seed,
  boundary,
  inputs,
  branches,
  defects,
});
