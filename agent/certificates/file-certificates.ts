import { statSync } from "node:fs";
import { ReconcileLoop } from "../../shared/async/reconcile-loop.ts";
import type { Logger } from "../../shared/log.ts";
import { readSmallFile } from "../../shared/os/plain-file.ts";
import { reasonOf } from "../../shared/reason.ts";
import type { GivenCertificatesConfig } from "../config/certificates-config.ts";
import { openToOthers } from "../config/own-files.ts";
import { HeldCertificate, type HeldFiles, type HeldOptions } from "./held-certificate.ts";
import type { Pair } from "./pair-check.ts";
import { maxFileBytes } from "./pair-store.ts";

/** How often the files are looked at; reading three small files costs nothing. */
const usualEveryMs = 5_000;

/**
 * A certificate that an operator gives, or a program such as cert-manager. The files are followed; what is in order is
 * copied before it is used, so that a file that is replaced alone changes nothing.
 */
export class FileCertificates implements AsyncDisposable {
  readonly #held: HeldCertificate;
  readonly #places: GivenCertificatesConfig;
  readonly #loop: ReconcileLoop;

  constructor(
    places: GivenCertificatesConfig,
    options: HeldOptions & { readonly logger: Logger; readonly everyMs?: number },
  ) {
    const { logger, everyMs = usualEveryMs } = options;
    this.#held = new HeldCertificate(options);
    this.#places = places;
    this.#loop = new ReconcileLoop({
      ...{ what: "the node's certificate for IPsec", logger, everyMs },
      retry: { firstMs: everyMs, longestMs: everyMs },
      reconcile: async () => {
        const wrong = this.#look();
        return (await this.#held.settle()) ?? wrong;
      },
    });
    // At the start they are there, as a rule: a data path need not begin without.
    this.#look();
    this.#loop.trigger();
  }

  current(): HeldFiles | undefined {
    return this.#held.files;
  }

  problem(): string | undefined {
    return this.#held.problem;
  }

  set onChange(listener: (files: HeldFiles | undefined) => void) {
    this.#held.onChange = listener;
  }

  get onChange(): (files: HeldFiles | undefined) => void {
    return this.#held.onChange;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
  }

  /** Answers what is wrong. */
  #look(): string | undefined {
    const read = this.#read();
    if (typeof read === "string") {
      this.#held.trouble(read);
      return read;
    }
    return this.#held.use(read);
  }

  #read(): Pair | string {
    const { certificate, privateKey, authorities } = this.#places;
    try {
      const open = [certificate, privateKey, authorities].map(openToOthers).find((is) => is !== undefined);
      if (open !== undefined) return open;
      const mode = statSync(privateKey).mode & 0o777;
      if ((mode & 0o077) !== 0)
        return `"${privateKey}" can be read by others (mode ${mode.toString(8)}), wanted mode 600`;
      const text = (path: string): string => {
        try {
          return readSmallFile(path, maxFileBytes);
        } catch (caught) {
          throw new Error(`"${path}" cannot be read: ${reasonOf(caught)}`);
        }
      };
      return { certificate: text(certificate), privateKey: text(privateKey), ca: text(authorities) };
    } catch (caught) {
      return reasonOf(caught);
    }
  }
}
