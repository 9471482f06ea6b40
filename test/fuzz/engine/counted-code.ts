import { createInstrumenter, type Instrumenter } from "istanbul-lib-instrument";

/** How the code of one file counts: `hits[0]++`, `hits[1]++`, … */
export interface CountedCode {
  readonly code: string;
  /** How many counters it has taken. */
  readonly counters: number;
}

const parserPlugins = ["typescript", "explicitResourceManagement"];
let instrumenter: Instrumenter | undefined;

/**
 * A source with a counter at every branch, function and statement. The places are the library's; its counters, objects
 * that are looked up at every step, give way to one array, which is several times faster and can be read in one sweep.
 * @param array the global that holds the counters
 * @param first the number of the first counter
 */
export function countedCode(source: string, file: string, array: string, first: number): CountedCode {
  instrumenter ??= createInstrumenter({ esModules: true, compact: false, parserPlugins });
  const numbers = new Map<string, number>();
  const code = instrumenter
    .instrumentSync(source, file)
    .replaceAll(/\bcov_\w+\(\)\.([sfb])\[(\d+)\](?:\[(\d+)\])?\+\+/g, (_whole, ...place) => {
      const key = place.slice(0, 3).join();
      const number = numbers.get(key) ?? numbers.size;
      numbers.set(key, number);
      return `${array}[${first + number}]++`;
    })
    .replace(/^cov_\w+\(\);$/m, "");
  return { code, counters: numbers.size };
}
