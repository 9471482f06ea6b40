import type { AgentMeter, AgentSamples } from "../../agent/metrics/meter.ts";

/** Keeps what it is told, as texts such as `name{a=1,b=2}`; times are left out, since no test knows them. */
export class RecordedMeter implements AgentMeter {
  readonly told: string[] = [];
  readonly seconds: number[] = [];

  add(name: string, labels: Readonly<Record<string, string | number>>): void {
    this.told.push(keyOf(name, labels));
  }

  observe(name: string, labels: Readonly<Record<string, string | number>>, value: number): void {
    this.told.push(keyOf(name, labels));
    this.seconds.push(value);
  }
}

/** What a scrape would be told. */
export async function sampled(tell: (samples: AgentSamples) => void | Promise<void>): Promise<Record<string, number>> {
  const values: Record<string, number> = {};
  await tell({
    set: (name, labels, value) => {
      values[keyOf(name, labels)] = value;
    },
  });
  return values;
}

const keyOf = (name: string, labels: Readonly<Record<string, string | number>>): string => {
  const of = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
  return of.length === 0 ? name : `${name}{${of.join()}}`;
};
