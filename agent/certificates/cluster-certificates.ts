import { createPrivateKey, generateKeyPair } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import { bundleOf, certificateIn, tunnelCertificate } from "../../shared/certificates/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { writeAtomically } from "../../shared/os/atomic-file.ts";
import { readSmallFile } from "../../shared/os/plain-file.ts";
import { reasonOf } from "../../shared/reason.ts";
import { askedKeyFile } from "../config/certificates-config.ts";
import { HeldCertificate, type HeldFiles, type HeldOptions } from "./held-certificate.ts";
import { isSignedBy } from "./pair-check.ts";
import { maxFileBytes } from "./pair-store.ts";
import type { SigningRequests } from "./signing-requests.ts";

export interface ClusterTimes {
  /** How often it is looked whom to trust, and whether it is time for another certificate. */
  readonly everyMs: number;
  /** Nodes that hear of a new authority ask for a certificate of it spread over so long. */
  readonly spreadMs: number;
  /** How long nothing is asked for after a refusal. */
  readonly refusedMs: number;
}

interface ClusterOptions {
  /** The store's: the key of a request that is under way lies beside the pairs. */
  readonly directory: string;
  /** Ends what the requests go by. */
  readonly close?: () => Promise<void>;
  readonly times?: ClusterTimes;
}

const usualTimes: ClusterTimes = { everyMs: 60_000, spreadMs: 5 * 60_000, refusedMs: 5 * 60_000 };
const retry = { firstMs: 500, longestMs: 30_000, jitter: 0.5 } as const;
/** The part of its time after which a certificate is renewed: some on one day, others on another. */
const renewal = { from: 0.7, spread: 0.2 } as const;

const makeKeyPair = promisify(generateKeyPair);

/**
 * A certificate that the node asks its cluster for: its key is made here and told to nobody. Asked for once more before it
 * ends, and where another authority signs.
 */
export class ClusterCertificates implements AsyncDisposable {
  readonly #held: HeldCertificate;
  readonly #requests: SigningRequests;
  readonly #loop: ReconcileLoop;
  readonly #logger: Logger;
  readonly #now: () => Date;
  readonly #times: ClusterTimes;
  readonly #pendingKey: string;
  readonly #close: (() => Promise<void>) | undefined;
  /** Of the pair that is held. */
  #renewAtMs = 0;
  #renewOf: string | undefined;
  /** Since when another authority signs, and after which time this node asks it. */
  #followAtMs: number | undefined;
  #refused: { readonly untilMs: number; readonly reason: string } | undefined;

  constructor(requests: SigningRequests, options: HeldOptions & ClusterOptions) {
    const { logger, directory, now = () => new Date(), times = usualTimes } = options;
    this.#held = new HeldCertificate(options);
    this.#requests = requests;
    this.#logger = logger;
    this.#now = now;
    this.#times = times;
    this.#close = options.close;
    this.#pendingKey = join(directory, askedKeyFile);
    this.#loop = new ReconcileLoop({
      ...{ what: "the node's certificate for IPsec", logger, everyMs: times.everyMs, retry },
      reconcile: () => this.#look(),
    });
    this.#loop.trigger();
  }

  current(): HeldFiles | undefined {
    return this.#held.files;
  }

  problem(): string | undefined {
    const is = this.#held.problem;
    const { skew } = this.#requests;
    return is === undefined || skew === undefined ? is : `${is}; ${skew}`;
  }

  set onChange(listener: (files: HeldFiles | undefined) => void) {
    this.#held.onChange = listener;
  }

  get onChange(): (files: HeldFiles | undefined) => void {
    return this.#held.onChange;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await this.#close?.();
  }

  /** Answers what it waits for. @throws what went wrong */
  async #look(): Promise<string | undefined> {
    try {
      const waits = await this.#renew(await this.#requests.authorities());
      this.#held.trouble(waits);
      return (await this.#held.settle()) ?? waits;
    } catch (caught) {
      this.#held.trouble(reasonOf(caught));
      await this.#held.settle();
      throw caught;
    }
  }

  async #renew(ca: string): Promise<string | undefined> {
    const { pair } = this.#held;
    // Also the same again: whom to trust may have been taken away.
    const wrong = pair === undefined ? "" : this.#held.use({ ...pair, ca });
    if (wrong === undefined && !this.#isDue(pair?.certificate ?? "", ca)) return undefined;
    const { untilMs, reason } = this.#refused ?? { untilMs: 0, reason: "" };
    if (performance.now() < untilMs) return reason;
    this.#refused = undefined;
    const privateKey = await this.#askedKey(pair?.privateKey);
    const answer = await this.#requests.ask(privateKey);
    if (answer.t === "waiting")
      return `the request waits for a controller that ${answer.isApproved ? "signs" : "approves and signs"} ("--sign-ipsec")`;
    if (answer.t === "refused") return this.#refuse(`the controller has refused it: ${answer.reason}`);
    const refused = this.#held.use({ certificate: answer.certificate, privateKey, ca });
    if (refused !== undefined) return this.#refuse(`what the controller answered is of no use: ${refused}`);
    this.#forgetKey();
    return undefined;
  }

  /** With another key next time: the request of this one is answered. */
  #refuse(reason: string): string {
    const { refusedMs } = this.#times;
    this.#refused = { untilMs: performance.now() + refusedMs * (0.5 + Math.random() / 2), reason };
    this.#forgetKey();
    this.#logger.warn("the node gets no certificate for IPsec", { error: reason });
    return reason;
  }

  #isDue(certificate: string, ca: string): boolean {
    const own = certificateIn(certificate);
    const [newest] = bundleOf(ca);
    if (own === undefined || newest === undefined) return true;
    const nowMs = this.#now().getTime();
    if (this.#renewOf !== certificate) {
      const [from, until] = [own.validFromDate.getTime(), own.validToDate.getTime()];
      this.#renewOf = certificate;
      this.#renewAtMs = from + (until - from) * (renewal.from + renewal.spread * Math.random());
    }
    if (isSignedBy(own, newest.certificate)) this.#followAtMs = undefined;
    else this.#followAtMs ??= nowMs + this.#times.spreadMs * Math.random();
    return nowMs >= Math.min(this.#renewAtMs, this.#followAtMs ?? Number.POSITIVE_INFINITY);
  }

  /** One that an earlier process has asked for is taken up again. */
  async #askedKey(current: string | undefined): Promise<string> {
    const asked = this.#readKey();
    // Of a process that was killed after its answer was kept.
    if (asked !== undefined && asked !== current) return asked;
    const { privateKey } = await makeKeyPair("rsa", { modulusLength: tunnelCertificate.keyBits.least });
    const text = String(privateKey.export({ type: "pkcs1", format: "pem" }));
    writeAtomically(this.#pendingKey, text);
    return text;
  }

  #readKey(): string | undefined {
    try {
      const text = readSmallFile(this.#pendingKey, maxFileBytes);
      createPrivateKey(text);
      return text;
    } catch {
      return undefined;
    }
  }

  #forgetKey(): void {
    rmSync(this.#pendingKey, { force: true });
  }
}
