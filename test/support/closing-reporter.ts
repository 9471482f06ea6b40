import type { Reporter, TestCase, TestModule } from "vitest/node";

interface Tally {
  passed: number;
  failed: number;
  skipped: { name: string; reason: string }[];
}

/**
 * Says one line per file while the run goes on, with what failed in it, then once more what failed, what was skipped
 * and why, and closes with `N passed, N failed, N skipped` alone on the last line.
 */
export class ClosingReporter implements Reporter {
  readonly #tally: Tally = { passed: 0, failed: 0, skipped: [] };
  readonly #failures: string[] = [];
  readonly #print: (text: string) => void;

  constructor(print: (text: string) => void) {
    this.#print = print;
  }

  onTestModuleEnd(module: TestModule): void {
    const seconds = (module.diagnostic().duration / 1000).toFixed(1);
    const before = this.#tally.failed;
    const listed = this.#failures.length;
    for (const test of module.children.allTests()) this.#count(test);
    // A file that cannot even be loaded has no tests, and is a failure all the same.
    for (const error of module.errors()) this.#fail(module.relativeModuleId, described(error));
    for (const suite of module.children.allSuites()) {
      for (const error of suite.errors())
        this.#fail(`${module.relativeModuleId} > ${suite.fullName}`, described(error));
    }
    const count = [...module.children.allTests()].length;
    const verdict = this.#tally.failed === before ? "ok  " : "FAIL";
    const work = ((module.meta().processorMs ?? 0) / 1000).toFixed(1);
    this.#print(`${verdict} ${module.relativeModuleId} (${count} tests, ${seconds} s, ${work} s of processor)`);
    // Printed here too, so that the reason is visible if the run is ended early or its output cut.
    for (const failure of this.#failures.slice(listed)) this.#print(indented(failure));
  }

  #count(test: TestCase): void {
    const result = test.result();
    const name = `${test.module.relativeModuleId} > ${test.fullName}`;
    if (result.state === "passed") {
      this.#tally.passed++;
    } else if (result.state === "skipped") {
      const reason = result.note ?? (groupFailed(test) ? "its group could not be set up" : undefined);
      // A test that is skipped without a reason would never be missed.
      if (reason === undefined)
        this.#fail(name, "it was skipped without a reason, wanted describeWith() or skip(reason)");
      else this.#tally.skipped.push({ name, reason });
    } else this.#fail(name, (result.errors ?? []).map(described).join("\n") || `it ended as "${result.state}"`);
  }

  #fail(name: string, text: string): void {
    this.#tally.failed++;
    this.#failures.push(`FAIL ${name}\n${text}`);
  }

  onTestRunEnd(_modules: readonly TestModule[], unhandled: readonly { message?: string; stack?: string }[]): void {
    for (const error of unhandled) this.#fail("outside any test", described(error));
  }

  get failed(): boolean {
    return this.#tally.failed > 0 || this.#tally.passed === 0;
  }

  /** Prints the summary; `alsoFailed` are lines of other checks. */
  close(alsoFailed: readonly string[]): void {
    const { passed, failed, skipped } = this.#tally;
    for (const failure of this.#failures) this.#print(`\n${failure}`);
    for (const check of alsoFailed) this.#print(`\nFAIL ${check}`);
    if (skipped.length > 0) this.#print("\nSkipped:");
    for (const { name, reason } of skipped) this.#print(`  ${name}: ${reason}`);
    this.#print(`\n${passed} passed, ${failed + alsoFailed.length} failed, ${skipped.length} skipped`);
  }
}

const indented = (text: string): string => text.replace(/^/gm, "  ");

function groupFailed(test: TestCase): boolean {
  for (let group = test.parent; ; group = group.parent) {
    if (group.errors().length > 0) return true;
    if (group.type === "module") return false;
  }
}

/** What happened, how it differs from what was wanted, and where in our own files. */
function described(error: { readonly message?: string; readonly stack?: string; readonly diff?: string }): string {
  const places = (error.stack ?? "").split("\n").filter((line) => /^\s+at .*[/\\]/.test(line));
  const ours = places.filter((line) => !line.includes("node_modules"));
  return [error.message ?? String(error), error.diff, ...(ours.length > 0 ? ours : places)]
    .filter((part) => part !== undefined && part !== "")
    .join("\n");
}
