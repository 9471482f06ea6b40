/**
 * What a program measures: each number by its name, as Prometheus has it. One table of these is all that a program has to
 * say about its numbers; the table in docs/metrics.md is compared with it.
 */
export interface Definition {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Each has few values, which do not grow with pods, addresses or time. */
  readonly labels: readonly string[];
  /** Of a histogram: the upper bounds, in its unit, ascending. */
  readonly buckets?: readonly number[];
}

export type Definitions = Readonly<Record<string, Definition>>;

export type LabelsOf<D extends Definitions, Name extends keyof D> = Readonly<
  Record<D[Name]["labels"][number], string | number>
>;

type NamesOf<D extends Definitions, Kind extends Definition["kind"]> = {
  [Name in keyof D]: D[Name]["kind"] extends Kind ? Name : never;
}[keyof D];

/** Takes what happens, where it happens. Where nobody wants numbers there is none, and nothing is done. */
export interface Meter<D extends Definitions> {
  /** @param by not negative */
  add<Name extends NamesOf<D, "counter">>(name: Name, labels: LabelsOf<D, Name>, by?: number): void;
  observe<Name extends NamesOf<D, "histogram">>(name: Name, labels: LabelsOf<D, Name>, value: number): void;
}

/** Takes what is there at the moment of a scrape. What is not told again is not there any more. */
export interface Samples<D extends Definitions> {
  set<Name extends NamesOf<D, "gauge" | "counter">>(name: Name, labels: LabelsOf<D, Name>, value: number): void;
}

/** Tells what is there now. What it throws costs a scrape its numbers, and no others. */
export type Reader<D extends Definitions> = (samples: Samples<D>) => void | Promise<void>;
