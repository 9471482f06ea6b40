import { startVitest } from "vitest/node";
import { checks, runCheck } from "../build/checks.ts";
import { projects } from "../vitest.config.mts";
import { ClosingReporter } from "./support/closing-reporter.ts";
import { differences, machineState } from "./support/machine.ts";
import { RunTimes } from "./support/run-times.ts";

/**
 * `npm test`: static checks, the executables, then every test file; with names of files, only those. With `--in-front`
 * those that start our plugins, with the small program of `forward/` in front of them.
 * Ends with the line `N passed, N failed, N skipped`; a failed check counts as a failure.
 */
const executables = {
  name: "executables (Linux, Windows)",
  command: [process.execPath, "run", "build/compile.ts", "all"],
};
// A differing value is shown in colours by a process that does not know where its text ends up.
if (!process.stdout.isTTY) process.env["NO_COLOR"] = "1";
const print = (text: string): void => console.log(text);
const started = performance.now();
const secondsSinceStart = (): string => ((performance.now() - started) / 1000).toFixed(0);
const machine = machineState();
const failedChecks: string[] = [];
/** What takes longest first, and two at a time: most of them use one processor. */
const toCheck = [executables, ...checks].values();
const checkAll = async (): Promise<void> => {
  for (const check of toCheck) {
    const outcome = await runCheck(check);
    print(`${outcome.ok ? "ok  " : "FAIL"} ${check.name} (${outcome.seconds.toFixed(1)} s)`);
    if (!outcome.ok) failedChecks.push(`${check.name}\n${outcome.output}`);
  }
};
await Promise.all([checkAll(), checkAll()]);

// The test files' processes need not look again at what is compiled.
process.env["PIPETTE_COMPILED"] = "1";
const reporter = new ClosingReporter(print);
const inFront = "--in-front";
const files = process.argv.slice(2).filter((word) => word !== inFront);
// Whole clusters are of a length that only those wait for who ask for them, by the names of files.
const notAsked = ["forwarded-rest", ...(files.length === 0 ? ["clusters"] : [])];
const project = process.argv.includes(inFront)
  ? ["forwarded", "forwarded-rest"]
  : projects.filter((name) => !notAsked.includes(name));
const times = new RunTimes();
const reporters = [reporter, times];
const vitest = await startVitest("test", files, { watch: false, run: true, project, passWithNoTests: true, reporters });
await vitest?.close();
const touched = differences(machine, machineState());
print(`${touched.length === 0 ? "ok  " : "FAIL"} the machine's own files are as they were`);
if (touched.length > 0) failedChecks.push(`the machine's own files are as they were\n${touched.join("\n")}`);
print(`\n${times.lines().join("\n")}`);
print(`\nThe whole run took ${secondsSinceStart()} s`);
reporter.close(failedChecks);
process.exit(reporter.failed || failedChecks.length > 0 ? 1 : 0);
