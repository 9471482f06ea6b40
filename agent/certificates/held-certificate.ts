import { certificateIn } from "../../shared/certificates/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { reasonOf } from "../../shared/reason.ts";
import { type Pair, wrongPair } from "./pair-check.ts";
import type { PairStore } from "./pair-store.ts";
import { trustAuthorities } from "./trusted-authorities.ts";

/** Paths of files in PEM, as a data path takes them. */
export interface HeldFiles {
  readonly certificate: string;
  readonly privateKey: string;
  readonly caCertificate: string;
}

export interface HeldOptions {
  /** The node's name, which a certificate has to be for. */
  readonly node: string;
  readonly store: PairStore;
  /** Where strongSwan reads whom to trust. */
  readonly trustDirectory: string;
  /** Has strongSwan read that again; answers why it does not. */
  readonly reread: () => Promise<string | undefined>;
  readonly logger: Logger;
  readonly now?: () => Date;
}

/** The part of a certificate's time after which another one should have come. */
const latePart = 11 / 12;

/** The certificate that a node shows the others: what is not in order is never used, and one in order stays until it ends. */
export class HeldCertificate {
  /** Called with others that count from now on; with `undefined` where there is none any more. */
  onChange: (files: HeldFiles | undefined) => void = () => undefined;
  readonly #options: HeldOptions;
  readonly #now: () => Date;
  #pair: Pair | undefined;
  /** Why there is no other one than this, or none. */
  #trouble: string | undefined;
  /** Whether strongSwan knows whom to trust: not before it was told so. */
  #isReread = false;
  #unread: string | undefined;
  /** The file of which whoever waits for it has heard. */
  #told: string | undefined;

  /** With what an earlier process has kept, where that is in order still. */
  constructor(options: HeldOptions) {
    const { store, node, now = () => new Date() } = options;
    this.#options = options;
    this.#now = now;
    const kept = store.read();
    if (kept === undefined) return;
    this.#trouble = wrongPair(kept, node, now());
    if (this.#trouble !== undefined) return;
    this.#pair = kept;
    this.#attempt(() => this.#trust(kept.ca));
    this.#told = this.files?.certificate;
  }

  get pair(): Pair | undefined {
    return this.#hasEnded() ? undefined : this.#pair;
  }

  get files(): HeldFiles | undefined {
    if (this.pair === undefined) return undefined;
    const { certificate, privateKey, ca } = this.#options.store.paths;
    return { certificate, privateKey, caCertificate: ca };
  }

  /** In a sentence; `undefined` while all is well. */
  get problem(): string | undefined {
    const own = certificateIn(this.#pair?.certificate ?? "");
    const why = this.#trouble ?? this.#unread;
    if (own === undefined) return `the node has no certificate for IPsec: ${why ?? "none has come yet"}`;
    const [from, until, now] = [own.validFromDate.getTime(), own.validToDate.getTime(), this.#now().getTime()];
    const ends = own.validToDate.toISOString();
    if (until <= now) return `the node's certificate for IPsec has ended at ${ends}: ${why ?? "no other has come"}`;
    if (why !== undefined) return `the node's certificate for IPsec, which ends at ${ends}, stays: ${why}`;
    const isLate = now > from + (until - from) * latePart;
    return isLate ? `the node's certificate for IPsec ends at ${ends}, and no other has come` : undefined;
  }

  /**
   * Uses another pair from now on, which `settle` tells of.
   * @returns what is wrong with it, and then all stays as it is
   */
  use(pair: Pair): string | undefined {
    const { node, store, logger } = this.#options;
    const before = this.#pair;
    // Somebody may have taken away whom to trust.
    if (before !== undefined && Bun.deepEquals(pair, before) && !this.#hasEnded())
      return this.#attempt(() => this.#trust(pair.ca));
    this.#trouble = wrongPair(pair, node, this.#now());
    if (this.#trouble !== undefined) return this.#trouble;
    // Trusted first: others may have theirs from a new authority already.
    const failure = this.#attempt(() => {
      this.#trust(pair.ca);
      store.put(pair);
    });
    if (failure !== undefined) return failure;
    this.#pair = pair;
    const ends = certificateIn(pair.certificate)?.validToDate.toISOString();
    logger.info("the node shows another certificate for IPsec", { ends });
    return undefined;
  }

  /**
   * Tells strongSwan whom to trust, and then whoever waits for it of another pair. To be repeated.
   * @returns why strongSwan does not know
   */
  async settle(): Promise<string | undefined> {
    if (this.#pair !== undefined && !this.#isReread) {
      this.#isReread = true;
      this.#unread = await this.#options.reread();
      if (this.#unread !== undefined) this.#isReread = false;
    }
    const { files } = this;
    if (this.#told !== files?.certificate) {
      this.#told = files?.certificate;
      this.onChange(files);
    }
    return this.#unread;
  }

  /** What keeps another one from coming; `undefined`: nothing any more. */
  trouble(is: string | undefined): void {
    this.#trouble = is;
  }

  #trust(ca: string): void {
    if (trustAuthorities(this.#options.trustDirectory, ca)) this.#isReread = false;
  }

  #hasEnded(): boolean {
    const ends = certificateIn(this.#pair?.certificate ?? "")?.validToDate;
    return ends !== undefined && ends <= this.#now();
  }

  #attempt(work: () => void): string | undefined {
    try {
      work();
      this.#trouble = undefined;
    } catch (caught) {
      this.#trouble = reasonOf(caught);
    }
    return this.#trouble;
  }
}
