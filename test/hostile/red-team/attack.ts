import { RawLink } from "../../support/frames/raw-link.ts";
import { type Belief, beliefsOf, wrongChanges } from "./beliefs.ts";
import { type Control, controlsOf } from "./controls.ts";
import { culpritOf } from "./culprit.ts";
import { Draw } from "./grammar/draw.ts";
import { Grammar, type Shot } from "./grammar/frames.ts";
import { vocabularyOf } from "./grammar/vocabulary.ts";
import { type Arrival, Listening } from "./listening.ts";
import { brokenRule } from "./model.ts";
import { Outcome } from "./outcome.ts";
import { parseFrame } from "./parse.ts";
import type { Rule } from "./rules.ts";
import type { Site } from "./sites/site.ts";
import { numberIn } from "./token.ts";
import { nameOf, type Place } from "./world.ts";

/** Of frames that are sent before somebody looks what came of them: fewer than what a switch in user space lets wait. */
const batchFrames = 96;
/** A switch in user space loses packets: how often a control is sent before its silence means something. */
const controlTries = 8;
const controlMs = 250;
/** Between looks at what everybody believes, which start some processes. */
const framesPerLook = 5_000;

export interface AttackOptions {
  readonly frames: number;
  readonly signal?: AbortSignal;
  readonly progress?: (outcome: Outcome) => void;
}

/** Where a frame arrived that is followed by itself, and what that breaks. */
export interface Judged {
  readonly place: Place;
  readonly frame: Uint8Array;
  readonly rule: Rule | undefined;
}

/** Sends from the attacker's pod, and holds whatever arrives, and whatever somebody then believes, against the rules. */
export class Attack implements Disposable {
  readonly outcome = new Outcome();
  readonly #site: Site;
  readonly #link: RawLink;
  readonly #listening: Listening;
  readonly #grammar: Grammar;
  readonly #controls: readonly Control[];
  readonly #sent = new Map<number, Shot>();
  /** Of controls on their way: where each was heard. */
  readonly #heard = new Map<number, Set<string>>();
  /** Since the last look. */
  #unseen: Shot[] = [];
  #beliefs: readonly Belief[] = [];
  #isRepeating = false;
  #followed: { readonly number: number; readonly judged: Judged[] } | undefined;

  private constructor(site: Site, seed: number, link: RawLink, listening: Listening) {
    this.#site = site;
    this.#link = link;
    this.#listening = listening;
    this.#grammar = new Grammar(new Draw(seed), vocabularyOf(site.world), site.world, site.mtu);
    this.#controls = controlsOf(site.world);
  }

  /** Nothing is sent yet but what must arrive. @throws where that does not */
  static async begin(site: Site, seed: number): Promise<Attack> {
    const { namespace, ifname } = site.attacker;
    using stack = new DisposableStack();
    const link = stack.use(await RawLink.open(namespace, ifname));
    const attack = new Attack(site, seed, link, stack.use(await Listening.start(site.ears)));
    await attack.#proveControls();
    attack.#beliefs = await beliefsOf(site);
    stack.move();
    return attack;
  }

  /** What the grammar makes. @throws where what must arrive does not */
  async run({ frames, signal, progress }: AttackOptions): Promise<void> {
    const until = this.outcome.frames + frames;
    try {
      while (this.outcome.frames < until && signal?.aborted !== true) {
        const shots: Shot[] = [];
        while (shots.length < Math.min(batchFrames, until - this.outcome.frames)) shots.push(...this.#grammar.next());
        await this.#volley(shots);
        if (this.#unseen.length >= framesPerLook) await this.look();
        progress?.(this.outcome);
      }
    } finally {
      // Also where the attack has cut off somebody, and just then.
      await this.look();
    }
  }

  /** Frames as they are, of which the last carries a token. @returns where that arrived */
  async replay(frames: readonly Uint8Array[]): Promise<readonly Judged[]> {
    const shots = frames.map((bytes) => ({ bytes, number: numberIn(bytes) ?? 0, words: "sent again" }));
    const followed = shots.at(-1)?.number;
    if (followed === undefined || followed === 0)
      throw new Error("Cannot follow the frame: it carries no token, wanted one that the red team has made");
    this.#followed = { number: followed, judged: [] };
    await this.#volley(shots);
    return this.#followed.judged;
  }

  async #volley(shots: readonly Shot[]): Promise<void> {
    for (const shot of shots) {
      this.#send(shot);
      this.#unseen.push(shot);
    }
    await this.#proveControls();
    this.outcome.frames += shots.length;
  }

  #send(shot: Shot): void {
    this.#sent.set(shot.number, shot);
    try {
      this.#link.send(shot.bytes);
    } catch {
      this.outcome.refused++;
    }
  }

  /** Everything that was sent before has arrived by then, if it does. @throws where one of them does not arrive */
  async #proveControls(maxTries = controlTries): Promise<void> {
    const missing = new Set(this.#controls);
    for (let tries = 0; tries < maxTries; tries++) {
      const sent = [...missing].map((control) => ({ control, ...this.#sendControl(control) }));
      const until = performance.now() + controlMs;
      while (missing.size > 0 && performance.now() < until) {
        await Bun.sleep(1);
        for (const arrival of this.#listening.heard()) this.#judge(arrival);
        for (const { control, number } of sent)
          if (this.#heard.get(number)?.has(nameOf(control.place)) === true) missing.delete(control);
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

  #judge({ number, place, frame }: Arrival): void {
    const shot = this.#sent.get(number);
    // Of another run, or damaged on its way.
    if (shot === undefined) return;
    this.#heard.get(number)?.add(nameOf(place));
    const rule = brokenRule(this.#site.world, parseFrame(shot.bytes), place, parseFrame(frame));
    if (this.#isRepeating) return;
    if (number === this.#followed?.number) this.#followed.judged.push({ place, frame, rule });
    if (rule === undefined) this.outcome.allowed++;
    else this.outcome.note(rule, nameOf(place), shot);
  }

  /** At what everybody believes by now. */
  async look(): Promise<void> {
    const after = await beliefsOf(this.#site);
    const shots = this.#unseen;
    this.#unseen = [];
    for (const change of wrongChanges(this.#site.world, this.#beliefs, after)) {
      const { rule, belief, text } = change;
      if (!this.outcome.note(rule, belief.who, undefined, text)) continue;
      this.outcome.blame(rule, belief.who, await culpritOf(this.#site, change, shots, (some) => this.#again(some)));
    }
    this.#beliefs = after;
  }

  /** What comes of it has been noted already. */
  async #again(shots: readonly Shot[]): Promise<void> {
    this.#isRepeating = true;
    for (let at = 0; at < shots.length; at += batchFrames) {
      for (const shot of shots.slice(at, at + batchFrames)) this.#send(shot);
      // The attack may have cut off somebody.
      await this.#proveControls(1).catch(() => undefined);
    }
    this.#isRepeating = false;
  }

  [Symbol.dispose](): void {
    this.#listening[Symbol.dispose]();
    this.#link[Symbol.dispose]();
  }
}
