import { reasonOf } from "../../shared/reason.ts";

const color = process.stdout.isTTY === true && process.env["NO_COLOR"] === undefined;
const paint = (code: number, text: string): string => (color ? `\u001b[${code}m${text}\u001b[0m` : text);

/** A step that ended the demo. */
export class StepFailed extends Error {
  override readonly name = "StepFailed";
  readonly step: string;
  constructor(step: string, cause: unknown) {
    super(reasonOf(cause), { cause });
    this.step = step;
  }
}

export interface Outcome<T> {
  readonly value: T;
  /** How long the call under show took; absent: the whole step. */
  readonly ms?: number;
  /** One line beside the step. */
  readonly note?: string;
}

/** Says what happens: a line per step, with the time of the call that it shows. */
export class Screen {
  title(text: string): void {
    console.log(`\n${paint(1, text)}`);
  }

  /** Text that belongs to the step above. */
  block(text: string): void {
    console.log(
      text
        .trimEnd()
        .split("\n")
        .map((line) => `      ${paint(2, line)}`)
        .join("\n"),
    );
  }

  /** Runs one step and shows how it went. @throws StepFailed with the step's name */
  async step<T>(name: string, work: () => Promise<Outcome<T>>): Promise<T> {
    const started = performance.now();
    try {
      const { value, ms = performance.now() - started, note = "" } = await work();
      console.log(`  ${paint(32, "ok")}  ${name.padEnd(44)} ${`${ms.toFixed(1)} ms`.padStart(10)}   ${note}`.trimEnd());
      return value;
    } catch (caught) {
      console.log(`  ${paint(31, "no")}  ${name}`);
      throw new StepFailed(name, caught);
    }
  }
}
