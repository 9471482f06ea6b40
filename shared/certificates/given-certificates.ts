import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { CniCode, CniError } from "../errors.ts";
import { reasonOf } from "../reason.ts";
import { type CertificateSource, certificateIn, isKeyOf, type Serving } from "./serving.ts";

/** Certificates that an operator gives, or a program such as cert-manager: `tls.crt`, `tls.key` and `ca.crt` of a directory. */
export class GivenCertificates implements CertificateSource {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async current(): Promise<Serving> {
    const [cert = "", key = "", ca = ""] = await Promise.all(
      ["tls.crt", "tls.key", "ca.crt"].map((name) => this.#read(name)),
    );
    const server = certificateIn(cert);
    if (server === undefined) throw this.#wrong("tls.crt is no certificate");
    // Files that are replaced one after the other: the next look finds both.
    if (!isKeyOf(key, server)) throw this.#wrong("tls.key is not the key of tls.crt");
    if (certificateIn(ca) === undefined) throw this.#wrong("ca.crt is no certificate");
    if (server.validToDate < new Date()) throw this.#wrong(`tls.crt has ended on ${server.validTo}`);
    return { cert, key, ca };
  }

  async #read(name: string): Promise<string> {
    try {
      return await readFile(join(this.#directory, name), "utf8");
    } catch (caught) {
      throw this.#wrong(`${name}: ${reasonOf(caught)}`);
    }
  }

  #wrong(is: string): CniError {
    return new CniError(CniCode.invalidConfig, `Cannot use the certificates of "${this.#directory}": ${is}`);
  }
}
