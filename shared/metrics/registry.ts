import { withTimeout } from "../async/with-timeout.ts";
import type { Definition, Definitions, LabelsOf, Meter, Reader, Samples } from "./definitions.ts";

/** Of one metric: more than any program here has, so that a wrong label takes no memory. */
const maxSeries = 1_000;
/** How long a scrape waits for one reader: a data path that is away is not waited for. */
const usualReadMs = 2_000;
/** Whoever asks more often gets the same text: a scrape is bounded work, whoever asks. */
const usualFreshMs = 1_000;

/** The text format of Prometheus, 0.0.4. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8";

/** The values of one metric, by the text of their labels. */
type Series = Map<string, number>;

interface Distribution {
  /** Of each bucket alone, and the last of what is above them all. */
  readonly counts: number[];
  sum: number;
}

/**
 * All numbers of one program, and their text. Why not a library: docs/dependencies.md.
 */
export class Registry<D extends Definitions> implements Meter<D> {
  readonly #definitions: D;
  readonly #counters = new Map<keyof D, Series>();
  readonly #histograms = new Map<keyof D, Map<string, Distribution>>();
  readonly #readers = new Set<Reader<D>>();
  readonly #readMs: number;
  readonly #freshMs: number;
  #asked: { readonly sinceMs: number; readonly text: Promise<string> } | undefined;

  constructor(definitions: D, { readMs = usualReadMs, freshMs = usualFreshMs } = {}) {
    this.#definitions = definitions;
    this.#readMs = readMs;
    this.#freshMs = freshMs;
  }

  add<Name extends keyof D>(name: Name, labels: LabelsOf<D, Name>, by = 1): void {
    const series = seriesIn(this.#counters, name);
    const key = this.#key(name, labels);
    if (by >= 0 && hasRoom(series, key)) series.set(key, (series.get(key) ?? 0) + by);
  }

  observe<Name extends keyof D>(name: Name, labels: LabelsOf<D, Name>, value: number): void {
    const series = seriesIn(this.#histograms, name);
    const key = this.#key(name, labels);
    if (Number.isNaN(value) || !hasRoom(series, key)) return;
    const { buckets = [] } = this.#definitions[name] ?? {};
    const known = series.get(key) ?? { counts: new Array<number>(buckets.length + 1).fill(0), sum: 0 };
    series.set(key, known);
    const place = buckets.findIndex((most) => value <= most);
    const at = place < 0 ? buckets.length : place;
    known.counts[at] = (known.counts[at] ?? 0) + 1;
    known.sum += value;
  }

  /** Asked at every scrape, until it is disposed of. */
  read(reader: Reader<D>): Disposable {
    this.#readers.add(reader);
    return { [Symbol.dispose]: () => void this.#readers.delete(reader) };
  }

  /** Everything, as Prometheus reads it. */
  text(): Promise<string> {
    const nowMs = performance.now();
    if (this.#asked === undefined || nowMs - this.#asked.sinceMs >= this.#freshMs)
      this.#asked = { sinceMs: nowMs, text: this.#write() };
    return this.#asked.text;
  }

  async #write(): Promise<string> {
    const read = await Promise.all([...this.#readers].map((reader) => this.#read(reader)));
    return Object.entries(this.#definitions)
      .map(([name, definition]) => {
        const values = new Map(this.#counters.get(name));
        for (const of of read) for (const [key, value] of of.get(name) ?? []) values.set(key, value);
        const lines =
          definition.kind === "histogram"
            ? histogramLines(name, definition, this.#histograms.get(name))
            : [...values].map(([key, value]) => `${name}${braced(key)} ${numberText(value)}`);
        const help = definition.help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
        return lines.length === 0
          ? ""
          : [`# HELP ${name} ${help}`, `# TYPE ${name} ${definition.kind}`, ...lines, ""].join("\n");
      })
      .join("");
  }

  async #read(reader: Reader<D>): Promise<Map<keyof D, Series>> {
    const values = new Map<keyof D, Series>();
    const samples: Samples<D> = {
      set: (name, labels, value) => {
        const series = seriesIn(values, name);
        const key = this.#key(name, labels);
        if (hasRoom(series, key)) series.set(key, value);
      },
    };
    const reading = (async () => await reader(samples))().catch(() => undefined);
    await withTimeout(reading, this.#readMs, () => undefined);
    // What comes later belongs to no scrape.
    return new Map([...values].map(([name, series]) => [name, new Map(series)]));
  }

  /** In the order of the definition, whatever that of the call. */
  #key<Name extends keyof D>(name: Name, labels: LabelsOf<D, Name>): string {
    const given: Readonly<Record<string, string | number>> = labels;
    return (this.#definitions[name]?.labels ?? []).map((label) => `${label}="${escaped(given[label])}"`).join(",");
  }
}

const escaped = (value: string | number | undefined): string =>
  String(value ?? "")
    .replaceAll("\\", "\\\\")
    .replaceAll("\n", "\\n")
    .replaceAll('"', '\\"');

const braced = (labels: string): string => (labels === "" ? "" : `{${labels}}`);

const numberText = (value: number): string =>
  Number.isFinite(value) || Number.isNaN(value) ? String(value) : value > 0 ? "+Inf" : "-Inf";

function seriesIn<K, V>(all: Map<K, Map<string, V>>, name: K): Map<string, V> {
  const known = all.get(name);
  if (known !== undefined) return known;
  const made = new Map<string, V>();
  all.set(name, made);
  return made;
}

const hasRoom = (series: ReadonlyMap<string, unknown>, key: string): boolean =>
  series.size < maxSeries || series.has(key);

/** Prometheus counts in each bucket also what is in those below it. */
function histogramLines(
  name: string,
  { buckets = [] }: Definition,
  series: ReadonlyMap<string, Distribution> = new Map(),
): string[] {
  return [...series].flatMap(([key, { counts, sum }]) => {
    let total = 0;
    const lines = counts.map((count, i) => {
      total += count;
      const bucket = `le="${numberText(buckets[i] ?? Number.POSITIVE_INFINITY)}"`;
      return `${name}_bucket{${key === "" ? bucket : `${key},${bucket}`}} ${total}`;
    });
    return [...lines, `${name}_sum${braced(key)} ${numberText(sum)}`, `${name}_count${braced(key)} ${total}`];
  });
}
