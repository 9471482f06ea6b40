import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  bundleOf,
  certificateIn,
  type Issued,
  isKeyOf,
  type KeptAuthority,
  madeAtMs,
  renewedAuthority,
  tunnelCertificate,
} from "../../shared/certificates/mod.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { ApiClient } from "../../shared/kubernetes/mod.ts";
import { reasonOf } from "../../shared/reason.ts";
import { KeptSecret } from "../certificates/mod.ts";

/** Who signs now. */
export interface SigningAuthority {
  /** Its certificate alone, with its key. */
  readonly issuer: Issued;
  /** All that nodes are to trust, the issuer first. */
  readonly ca: string;
  /** In milliseconds of the epoch: nothing is signed before, so that all nodes trust it by then. */
  readonly fromMs: number;
}

/** Where the authority comes from. */
export interface AuthoritySource {
  /** @throws what keeps it from being read or made */
  current(): Promise<SigningAuthority>;
}

const authorityDays = 10 * 365;
/** More than any certificate that it signs holds. */
const leastDays = 2 * 365;
/** Agents look for a new one every minute; until they trust it, what it has signed would be refused. */
const usualPublishedMs = 3 * 60_000;

/** One that is made here, kept in a Secret. To have another one made, take `ca.key` out of it. */
export class KeptAuthoritySource implements AuthoritySource {
  readonly #secret: KeptSecret<KeptAuthority>;
  readonly #now: () => Date;
  readonly #publishedMs: number;

  constructor(client: ApiClient, namespace: string, { now = () => new Date(), publishedMs = usualPublishedMs } = {}) {
    const place = { namespace, name: tunnelCertificate.configMap };
    this.#secret = new KeptSecret<KeptAuthority>(client, place, "Opaque", { ca: "ca.crt", caKey: "ca.key" });
    this.#now = now;
    this.#publishedMs = publishedMs;
  }

  async current(): Promise<SigningAuthority> {
    const now = this.#now();
    // Two of one name would be told apart by their keys alone.
    const name = `${tunnelCertificate.configMap} ${now.toISOString().slice(0, 19)}Z`;
    const { ca, caKey } = await this.#secret.renewed((kept) =>
      renewedAuthority(kept, { name, days: authorityDays, leastDays }, now),
    );
    return authorityOf(ca, caKey, this.#publishedMs);
  }
}

/** One that an operator gives: `ca.crt`, the one that signs first, and its key `ca.key` of a directory. */
export class GivenAuthoritySource implements AuthoritySource {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async current(): Promise<SigningAuthority> {
    const [ca = "", key = ""] = await Promise.all(["ca.crt", "ca.key"].map((name) => this.#read(name)));
    const issuer = certificateIn(ca);
    if (issuer === undefined) throw this.#wrong("ca.crt is no certificate");
    if (!isKeyOf(key, issuer)) throw this.#wrong("ca.key is not the key of the first certificate of ca.crt");
    if (!issuer.ca || !issuer.checkIssued(issuer) || !issuer.verify(issuer.publicKey))
      throw this.#wrong("the first certificate of ca.crt is no authority that has signed itself");
    if (issuer.validToDate < new Date())
      throw this.#wrong(`the first certificate of ca.crt has ended on ${issuer.validTo}`);
    return authorityOf(ca, key, Number.NEGATIVE_INFINITY);
  }

  async #read(name: string): Promise<string> {
    try {
      return await readFile(join(this.#directory, name), "utf8");
    } catch (caught) {
      throw this.#wrong(`${name}: ${reasonOf(caught)}`);
    }
  }

  #wrong(is: string): CniError {
    return new CniError(CniCode.invalidConfig, `Cannot sign with the authority of "${this.#directory}": ${is}`);
  }
}

function authorityOf(ca: string, key: string, publishedMs: number): SigningAuthority {
  const [issuer, ...before] = bundleOf(ca);
  return {
    issuer: { cert: issuer?.text ?? "", key },
    ca: [issuer, ...before].map((each) => each?.text ?? "").join(""),
    fromMs: issuer === undefined || before.length === 0 ? 0 : madeAtMs(issuer.certificate) + publishedMs,
  };
}
