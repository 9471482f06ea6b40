import os from "node:os";
import type { Summary } from "../stats.ts";
import type { IpamFigures } from "./measure-ipam.ts";

const fixed = (value: number, digits: number): string => value.toFixed(digits);
const micros = ({ median, p99 }: Summary): string => `${fixed(median, 0)} / ${fixed(p99, 0)}`;
const thousands = (value: number): string => Math.round(value).toLocaleString("en");

/** Two tables in Markdown, for people and for the documents. */
export function ipamTables({ pools, writers }: IpamFigures): string {
  const poolHead = [
    ...["pool", "cold ADD, ms", "host-local", "cold DEL, ms", "host-local"],
    ...["ADD, µs p50 / p99", "CHECK", "DEL", "ADDs per second", "bytes per lease", "resident MB"],
  ];
  const poolRows = pools.map(({ pool, cold, hostLocal, warm, bytesPerLease }) => [
    pool,
    fixed(cold.add.median, 1),
    hostLocal === undefined ? "–" : fixed(hostLocal.add.median, 1),
    fixed(cold.del.median, 1),
    hostLocal === undefined ? "–" : fixed(hostLocal.del.median, 1),
    ...[micros(warm.add), micros(warm.check), micros(warm.del)],
    thousands(warm.allocationsPerSecond),
    bytesPerLease === undefined ? "–" : fixed(bytesPerLease, 0),
    fixed(warm.residentMb, 0),
  ]);
  const writerHead = ["processes that write at once", "ADDs per second, all", "one ADD, µs p50 / p99", "doubled"];
  const writerRows = writers.map((one) => [
    String(one.writers),
    thousands(one.allocationsPerSecond),
    micros(one.add),
    String(one.doubled),
  ]);
  return `${markdown(poolHead, poolRows)}\n\n${markdown(writerHead, writerRows)}`;
}

const markdown = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map((_, i) => (i === 0 ? "---" : "--:")), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n");

/** One JSON line per pool and per number of writers, each complete in itself. */
export function ipamJsonLines({ pools, writers }: IpamFigures, versions: Readonly<Record<string, string>>): string {
  const machine = { cpu: os.cpus()[0]?.model.trim() ?? "", cores: os.cpus().length, kernel: os.release() };
  const date = new Date().toISOString();
  const line = (measure: string, figures: object): string =>
    JSON.stringify({ date, measure, ...figures, machine, versions });
  return [...pools.map((figures) => line("pool", figures)), ...writers.map((figures) => line("writers", figures))].join(
    "\n",
  );
}
