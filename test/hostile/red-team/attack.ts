import { RawLink } from "../../support/frames/raw-link.ts";
import { type Control, controlsOf } from "./controls.ts";
import { Draw } from "./grammar/draw.ts";
import { Grammar, type Shot } from "./grammar/frames.ts";
import { vocabularyOf } from "./grammar/vocabulary.ts";
import { type Arrival, Listening } from "./listening.ts";
import { brokenRule } from "./model.ts";
import { parseFrame } from "./parse.ts";
import type { Rule } from "./rules.ts";
import type { Site } from "./sites/site.ts";
import { nameOf, type Place } from "./world.ts";

/** Of frames that are sent before somebody looks what came of them: fewer than what a switch in user space lets wait. */
const batchFrames = 96;
/** A switch in user space loses packets: how often a control is sent before the batch counts for nothing. */
const controlTries = 8;
const controlMs = 250;

/** What got through, of one rule at one place. */
export interface Finding {
  readonly rule: Rule;
  readonly place: string;
  count: number;
  /** The smallest frame that shows it. */
  smallest: Shot;
}

export interface Outcome {
  frames: number;
  /** The attacker's own kernel did not take them. */
  refused: number;
  controls: number;
  controlsLost: number;
  /** Arrived where they may. */
  allowed: number;
  readonly findings: Map<string, Finding>;
}

export interface AttackOptions {
  readonly frames: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
  readonly progress?: (outcome: Outcome) => void;
}

/** Sends from the attacker's pod what the grammar makes, and holds whatever arrives against the model. */
export class Attack implements Disposable {
  readonly outcome: Outcome = { frames: 0, refused: 0, controls: 0, controlsLost: 0, allowed: 0, findings: new Map() };
  readonly #site: Site;
  readonly #link: RawLink;
  readonly #listening: Listening;
  readonly #grammar: Grammar;
  readonly #controls: readonly Control[];
  readonly #sent = new Map<number, Shot>();
  /** Of controls: where each was heard. */
  readonly #heard = new Map<number, Set<string>>();

  private constructor(site: Site, seed: number, link: RawLink, listening: Listening) {
    this.#site = site;
    this.#link = link;
    this.#listening = listening;
    this.#grammar = new Grammar(new Draw(seed), vocabularyOf(site.world), site.world, site.mtu);
    this.#controls = controlsOf(site.world);
  }

  static async begin(site: Site, seed: number): Promise<Attack> {
    const { namespace, ifname } = site.attacker;
    const link = await RawLink.open(namespace, ifname);
    return new Attack(site, seed, link, await Listening.start(site.ears));
  }

  async run({ frames, signal, progress }: Omit<AttackOptions, "seed">): Promise<Outcome> {
    await this.#proveControls();
    while (this.outcome.frames < frames && signal?.aborted !== true) {
      const shots: Shot[] = [];
      while (shots.length < Math.min(batchFrames, frames - this.outcome.frames)) shots.push(...this.#grammar.next());
      for (const shot of shots) this.#send(shot);
      await this.#proveControls();
      this.outcome.frames += shots.length;
      progress?.(this.outcome);
    }
    return this.outcome;
  }

  #send(shot: Shot): void {
    this.#sent.set(shot.number, shot);
    try {
      this.#link.send(shot.bytes);
    } catch {
      this.outcome.refused++;
    }
  }

  /** @throws where one of them does not arrive: then nothing that did not arrive means anything */
  async #proveControls(): Promise<void> {
    const missing = new Set(this.#controls);
    for (let tries = 0; tries < controlTries; tries++) {
      const sent = [...missing].map((control) => ({ control, ...this.#sendControl(control) }));
      const until = performance.now() + controlMs;
      while (missing.size > 0 && performance.now() < until) {
        await Bun.sleep(1);
        this.#listen();
        for (const { control, number } of sent) if (this.#heard.get(number)?.has(nameOf(control.place))) missing.delete(control);
      }
      for (const { number } of sent) this.#heard.delete(number);
      if (missing.size === 0) return;
      this.outcome.controlsLost += missing.size;
    }
    const lines = [...missing].map(({ to, place }) => `to ${to.words} (${to.hex}) at ${nameOf(place)}`);
    throw new Error(`Cannot judge the attack: what must arrive did not, ${lines.join("; ")}`);
  }

  #sendControl({ to, mac }: Control): Shot {
    const shot = this.#grammar.control(to, mac);
    this.#heard.set(shot.number, new Set());
    this.outcome.controls++;
    this.#send(shot);
    return shot;
  }

  #listen(): void {
    for (const arrival of this.#listening.heard()) this.#judge(arrival);
  }

  #judge({ number, place, frame }: Arrival): void {
    const shot = this.#sent.get(number);
    if (shot === undefined) return;
    this.#heard.get(number)?.add(nameOf(place));
    const rule = brokenRule(this.#site.world, parseFrame(shot.bytes), place, parseFrame(frame));
    if (rule === undefined) this.outcome.allowed++;
    else this.#note(rule, place, shot);
  }

  #note(rule: Rule, place: Place, shot: Shot): void {
    const key = `${rule} at ${nameOf(place)}`;
    const found = this.outcome.findings.get(key);
    if (found === undefined)
      this.outcome.findings.set(key, { rule, place: nameOf(place), count: 1, smallest: shot });
    else {
      found.count++;
      if (shot.bytes.length < found.smallest.bytes.length) found.smallest = shot;
    }
  }

  [Symbol.dispose](): void {
    this.#listening[Symbol.dispose]();
    this.#link[Symbol.dispose]();
  }
}
