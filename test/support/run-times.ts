import type { Reporter, TestModule } from "vitest/node";

interface FileTime {
  readonly path: string;
  readonly project: string;
  readonly seconds: number;
  readonly processorSeconds: number;
}

const mostListed = 30;

/** What test files take: by the clock, from the start of their process on, and of the processor. */
export class RunTimes implements Reporter {
  readonly #started = new Map<string, number>();
  readonly #files: FileTime[] = [];

  onTestModuleQueued(module: TestModule): void {
    this.#started.set(module.id, performance.now());
  }

  onTestModuleEnd(module: TestModule): void {
    this.#files.push({
      path: module.relativeModuleId,
      project: module.project.name,
      seconds: (performance.now() - (this.#started.get(module.id) ?? performance.now())) / 1000,
      processorSeconds: (module.meta().processorMs ?? 0) / 1000,
    });
  }

  /** The slowest files and those with the most processor time, then the sums of each project. */
  lines(): readonly string[] {
    const byClock = this.#files.toSorted((a, b) => b.seconds - a.seconds).slice(0, mostListed);
    const byWork = this.#files.toSorted((a, b) => b.processorSeconds - a.processorSeconds).slice(0, mostListed);
    const listed = [...new Set([...byClock, ...byWork])];
    const projects = [...new Set(this.#files.map(({ project }) => project))];
    return [
      "The slowest files, and those with the most processor time (seconds by the clock, of the processor):",
      ...listed.map((file) => row(file, `${file.path} (${file.project})`)),
      "All files of a project together:",
      ...projects.map((project) => {
        const own = this.#files.filter((file) => file.project === project);
        return row(sumOf(own), `${project} (${own.length} files)`);
      }),
    ];
  }
}

type Seconds = Pick<FileTime, "seconds" | "processorSeconds">;

const sumOf = (files: readonly Seconds[]): Seconds => ({
  seconds: files.reduce((sum, { seconds }) => sum + seconds, 0),
  processorSeconds: files.reduce((sum, { processorSeconds }) => sum + processorSeconds, 0),
});

const row = ({ seconds, processorSeconds }: Seconds, name: string): string =>
  `  ${seconds.toFixed(1).padStart(7)} ${processorSeconds.toFixed(1).padStart(7)}  ${name}`;
