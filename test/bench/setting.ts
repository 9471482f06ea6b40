import type { Launcher } from "./launch/launcher.ts";

/** What every measure needs to know about this run. */
export interface Setting {
  /** Directory with our compiled executables. */
  readonly dist: string;
  /** Directory with Debian's containernetworking-plugins. */
  readonly peers: string;
  readonly launcher: Launcher;
  /** Scratch directory of this run. */
  readonly scratch: string;
  /** Counted rounds of a comparison of single calls. */
  readonly rounds: number;
  /** How many leases "many" are: the sizes at which ADD is compared. */
  readonly fills: readonly number[];
  /** How many pods start at once. */
  readonly pods: number;
  /** How many pods stand when the agent's memory is read. */
  readonly residentPods: number;
  progress(text: string): void;
}
