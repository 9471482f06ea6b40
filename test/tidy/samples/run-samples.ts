import { startVitest } from "vitest/node";
import { ClosingReporter } from "../../support/closing-reporter.ts";

// The samples named by the arguments, reported on as `npm test` does; status 1 where that would fail.
const reporter = new ClosingReporter((text) => console.log(text));
const include = process.argv.slice(2);
const options = { config: false as const, watch: false, passWithNoTests: true, include, reporters: [reporter] };
const vitest = await startVitest("test", [], options);
await vitest?.close();
reporter.close([]);
process.exit(reporter.failed ? 1 : 0);
