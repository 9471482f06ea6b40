/** What is to go wrong with a call, or how long it is to take. */
export interface Fault {
  /** Name of the function, such as `HcnCreateEndpoint` or `HNSCall`; `*`: all but those that close a handle. */
  readonly call: string;
  /** Looked for in the arguments' texts and identifier; absent: any. */
  readonly match?: string | RegExp;
  /** Answered in place of doing it; absent: it is done. */
  readonly hresult?: number;
  /** What it writes about it. */
  readonly says?: string;
  /** The service answers that it is done, and has not done it: for calls that answer nothing else. */
  readonly pretends?: boolean;
  /** An HRESULT that the service answers, although it has done it. */
  readonly afterwards?: number;
  /** What happens at the service before the call has its effect, such as a call that was given up and comes true. */
  readonly meanwhile?: () => void;
  /** How long the call is held; `"until released"` is a hang. */
  readonly holdMs?: number | "until released";
  /** The call takes effect before it is held, in place of behind it. */
  readonly effectFirst?: boolean;
  /** How many calls are hit; absent: all. */
  readonly times?: number;
  /** How many that would be hit are let pass before; absent: none. */
  readonly skip?: number;
}

/** A fault that is in force. */
export class ActiveFault implements Disposable {
  readonly fault: Fault;
  /** How many calls it has hit. */
  hits = 0;
  #passed = 0;
  readonly #drop: (fault: ActiveFault) => void;
  readonly #release = Promise.withResolvers<void>();
  readonly #waiting = new Set<() => void>();

  constructor(fault: Fault, drop: (fault: ActiveFault) => void) {
    this.fault = fault;
    this.#drop = drop;
  }

  hitsOn(call: string, texts: readonly string[]): boolean {
    const { match, times = Number.POSITIVE_INFINITY, skip = 0 } = this.fault;
    if (this.hits >= times || !this.#isFor(call) || !fits(texts, match)) return false;
    this.#passed += 1;
    return this.#passed > skip;
  }

  #isFor(call: string): boolean {
    return this.fault.call === "*" ? !call.startsWith("HcnClose") : this.fault.call === call;
  }

  /** Keeps a call as long as it is to be held. */
  async hold(): Promise<void> {
    const { holdMs = 0 } = this.fault;
    if (holdMs === "until released") await this.#release.promise;
    else if (holdMs > 0) await Promise.race([Bun.sleep(holdMs), this.#release.promise]);
  }

  /** Counts a call that it hits. */
  count(): void {
    this.hits += 1;
    for (const tell of this.#waiting) tell();
    this.#waiting.clear();
  }

  /** Waits until it has hit so many calls. */
  async hit(times = 1, withinMs = 20_000): Promise<void> {
    const until = performance.now() + withinMs;
    while (this.hits < times) {
      const left = until - performance.now();
      if (left <= 0) throw new Error(`Waited in vain for ${this.fault.call} to be called ${times} times`);
      await Promise.race([Bun.sleep(left), new Promise<void>((resolve) => this.#waiting.add(resolve))]);
    }
  }

  /** Ends it: what is held goes on. */
  [Symbol.dispose](): void {
    this.#release.resolve();
    this.#drop(this);
  }
}

function fits(texts: readonly string[], match: string | RegExp | undefined): boolean {
  if (match === undefined) return true;
  return texts.some((text) => (typeof match === "string" ? text.includes(match) : match.test(text)));
}
