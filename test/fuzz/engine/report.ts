/** What a worker is asked for, as JSON on its command line. */
export interface WorkerOptions {
  readonly target: string;
  /** The module that has it. */
  readonly targets: string;
  readonly seed: number;
  readonly inputs: number;
  readonly milliseconds: number;
  /** The input that is being tried, for whoever looks that the worker goes on. */
  readonly sharedFile: string;
  /** Where inputs that show a defect are kept. */
  readonly foundDirectory: string;
  /** Put what was found to reach more into the corpus. */
  readonly keep: boolean;
  readonly maxKept: number;
  readonly maxKeptBytes: number;
}

export interface Progress {
  readonly t: "progress";
  readonly inputs: number;
  readonly seconds: number;
  /** Inputs that reach something that no earlier one reached. */
  readonly kept: number;
  /** Counters that were reached, of how many in the code that is loaded. */
  readonly reached: number;
  readonly counters: number;
}

/** What a worker says, a line of JSON each. */
export type Report =
  | Progress
  | { readonly t: "defect"; readonly file: string; readonly kind: string; readonly why: string }
  | { readonly t: "done"; readonly grown: number };
