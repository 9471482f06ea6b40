import { startVitest } from "vitest/node";
import { checks, runCheck } from "../build/checks.ts";
import { ClosingReporter } from "./support/closing-reporter.ts";

/**
 * `npm test`: static checks, the executables, then every test file. Ends with the line
 * `N passed, N failed, N skipped`; a failed check counts as a failure.
 */
const executables = {
  name: "executables (Linux, Windows)",
  command: [process.execPath, "run", "build/compile.ts", "all"],
};
const print = (text: string): void => console.log(text);
const started = performance.now();
const failedChecks: string[] = [];
for (const check of [...checks, executables]) {
  const outcome = await runCheck(check);
  print(`${outcome.ok ? "ok  " : "FAIL"} ${check.name} (${outcome.seconds.toFixed(1)} s)`);
  if (!outcome.ok) failedChecks.push(`${check.name}\n${outcome.output}`);
}

const reporter = new ClosingReporter(print);
const files = process.argv.slice(2);
const vitest = await startVitest("test", files, { watch: false, run: true, reporters: [reporter] });
await vitest?.close();
print(`\nThe whole run took ${((performance.now() - started) / 1000).toFixed(0)} s`);
reporter.close(failedChecks);
process.exit(reporter.failed || failedChecks.length > 0 ? 1 : 0);
