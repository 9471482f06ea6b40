import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { execa } from "execa";
import { runInside } from "../support/own-network.ts";
import { jsonLines, table } from "./report.ts";
import { passes, type Row } from "./row.ts";
import { versions } from "./versions.ts";

/** What every benchmark measures with. */
export interface BenchRun {
  /** Few rounds: the figures are rough. */
  readonly quick: boolean;
  readonly dist: string;
  readonly peers: string;
  readonly scratch: string;
  readonly progress: (text: string) => void;
}

export interface BenchProgram<T> {
  readonly usage: string;
  readonly measure: (run: BenchRun) => Promise<T>;
  /** For people. */
  readonly text: (figures: T) => string;
  /** For `--json`. */
  readonly lines: (figures: T, versions: Readonly<Record<string, string>>) => string;
}

/** Shows the help where it is asked for, and answers nothing then. */
function readCommandLine(usage: string): { readonly quick: boolean; readonly json?: string | undefined } | undefined {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help !== true) return values;
  console.log(usage);
  return undefined;
}

/** A benchmark at the command line: `--quick`, `--json FILE`, `--help`. @returns its figures; `undefined` for its help */
export async function runBench<T>({ usage, measure, text, lines }: BenchProgram<T>): Promise<T | undefined> {
  const asked = readCommandLine(usage);
  if (asked === undefined) return undefined;
  const scratch = mkdtempSync(join(tmpdir(), "pipette-bench-"));
  try {
    const figures = await measure({
      quick: asked.quick,
      dist: join(dirname(dirname(dirname(fileURLToPath(import.meta.url)))), "dist", "linux-x64"),
      peers: "/usr/lib/cni",
      scratch,
      progress: (words) => console.error(`measuring ${words}`),
    });
    console.log(`\n${text(figures)}`);
    if (asked.json !== undefined) appendFileSync(asked.json, `${lines(figures, await versions())}\n`);
    return figures;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** One whose rows have budgets, in a network namespace of its own. @returns exit status: 1 where a budget is broken */
export async function runBudgets(usage: string, measure: (run: BenchRun) => Promise<readonly Row[]>): Promise<number> {
  const inside = await runInside();
  if (inside !== undefined) return inside;
  const rows = await runBench({
    usage,
    text: table,
    lines: jsonLines,
    measure: async (run) => {
      await execa("ip", ["link", "set", "lo", "up"]);
      return measure(run);
    },
  });
  return rows === undefined || rows.every(passes) ? 0 : 1;
}
