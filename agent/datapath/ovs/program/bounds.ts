/** Every bound of the program, with its unit in the name and its reason. */
export const programBounds = {
  /** A change waits for the switch: one that restarts is back in a fraction of a second. Longer, and the pod's ADD is tried anew. */
  setMs: 10_000,
  /** The clean-up after a start is asked for once, and done later where this was too short. */
  finishMs: 30_000,
  /** One bundle of ten thousand flows takes 0.1 s; a machine that pages takes a hundred times as much. */
  bundleMs: 30_000,
  /** Calls that wait for their turn: one for each node of a large cluster, twice. */
  waitingCalls: 10_000,
  /** Flows and groups of one bundle, unless one call alone has more. */
  bundleMessages: 20_000,
  /** Silence after which the switch is asked whether it is there, and what its answer may take. */
  idleMs: 3_000,
  answerMs: 5_000,
  /** Between two attempts to connect: short while a restart may be under way, then twice as long each time. */
  retryFirstMs: 20,
  retryBriskMs: 3_000,
  retryMostMs: 1_000,
} as const;

export type ProgramBounds = Readonly<Record<keyof typeof programBounds, number>>;
