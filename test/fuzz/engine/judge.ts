/** What one input did that none may do. */
export interface Wrong {
  readonly kind: string;
  readonly why: string;
}

/** The processor's time that one input may cost: a thousand times the usual, and far from any deadline of a verb. */
const maxCpuMs = 400;

type Run = (bytes: Uint8Array) => void | Promise<void>;

/** Runs inputs and holds against each what holds for all targets: a bounded time, and objects that stay what they are. */
export class Judge {
  readonly #run: Run;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Answers at once where the target does: most are too quick to wait for a turn of the event loop. */
  judge(bytes: Uint8Array): Wrong | undefined | Promise<Wrong | undefined> {
    const started = performance.now();
    let running: void | Promise<void>;
    try {
      running = this.#run(bytes);
    } catch (caught) {
      return wrongOf(caught);
    }
    if (running === undefined) return this.#after(bytes, started);
    return running.then(() => this.#after(bytes, started), wrongOf);
  }

  #after(bytes: Uint8Array, started: number): Wrong | undefined | Promise<Wrong | undefined> {
    const probe: Record<string, unknown> = {};
    for (const key in probe) {
      delete (Object.prototype as Record<string, unknown>)[key];
      return { kind: "prototype", why: `Object.prototype has a property "${key}" after this input` };
    }
    return performance.now() - started < maxCpuMs ? undefined : this.#slow(bytes);
  }

  /** A machine that was busy says nothing: only what costs processor time, again and again, is slow. */
  async #slow(bytes: Uint8Array): Promise<Wrong | undefined> {
    let least = Number.POSITIVE_INFINITY;
    for (let times = 0; times < 3; times++) {
      const before = process.cpuUsage();
      await this.#run(bytes);
      const { user, system } = process.cpuUsage(before);
      least = Math.min(least, (user + system) / 1000);
    }
    if (least < maxCpuMs) return undefined;
    return { kind: "slow", why: `It takes ${least.toFixed(0)} ms of processor time, wanted less than ${maxCpuMs}` };
  }
}

/** By what was thrown and where, so that a defect is told once, not once for each value that shows it. */
function wrongOf(caught: unknown): Wrong {
  const error = caught instanceof Error ? caught : new Error(String(caught));
  const chain: string[] = [];
  for (let at: unknown = error; at instanceof Error; at = at.cause) chain.push(at.stack ?? `${at.name}: ${at.message}`);
  const why = chain.join("\ncaused by ");
  const text = error.message.replaceAll(/"(?:[^"\\]|\\.)*"|U\+[0-9a-f]+|\d+/g, "…").slice(0, 80);
  const place = /\/(?:agent|cni|ipam|shared)\/\S+?\.ts/.exec(why)?.[0] ?? "";
  return { kind: `${error.name}: ${text} ${place}`, why };
}
