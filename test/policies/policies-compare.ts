import { parseArgs } from "node:util";
import { reasonOf } from "../../shared/reason.ts";
import { seed } from "../support/seed.ts";
import { compare } from "./compare.ts";

const usage = `Usage: npm run policies:compare -- [--questions N] [--seed N]

Asks whether pods of random clusters with random policies may reach each other: the evaluator, a second one written from
the specification alone, and nodes that have only what the controller computes for them. Ends at the first difference with
the cluster and the question.

  --questions N  how many (1,000,000)
  --seed N       which ones (PIPETTE_SEED, or new ones each time)
`;

const { values } = parseArgs({
  options: {
    questions: { type: "string", default: "1000000" },
    seed: { type: "string", default: "PIPETTE_SEED" in process.env ? String(seed) : String(Date.now() % 1_000_000) },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(usage);
  process.exit(0);
}
const started = performance.now();
try {
  const { asked, allowed, isolated } = compare(Number(values.seed), Number(values.questions));
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  console.log(
    `seed ${values.seed}: ${asked} questions in ${seconds} s, ${allowed} allowed, ${isolated} decided by policies`,
  );
} catch (caught) {
  console.error(reasonOf(caught));
  process.exit(1);
}
