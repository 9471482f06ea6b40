import { join } from "node:path";
import { execa } from "execa";

/** Certificates and their keys, as PEM files of a directory. */
export class Certificates {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  file(name: string): string {
    return join(this.#directory, name);
  }

  pair(name: string): { readonly cert: string; readonly key: string } {
    return { cert: this.file(`${name}.pem`), key: this.file(`${name}.key`) };
  }

  /** Its common name is the name. Signed by the authority, for an address if there is one; else one that signs. */
  async make(name: string, authority?: string, address?: string): Promise<void> {
    const file = (each: string): string => this.file(each);
    const signed = authority === undefined ? [] : ["-CA", file(`${authority}.pem`), "-CAkey", file(`${authority}.key`)];
    const usage = ["-addext", "extendedKeyUsage=serverAuth,clientAuth", "-addext", "basicConstraints=CA:FALSE"];
    const place = address === undefined ? [] : ["-addext", `subjectAltName=IP:${address}`];
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", file(`${name}.key`)];
    const rest = ["-subj", `/CN=${name}`, "-days", "2", "-out", file(`${name}.pem`), ...place];
    await execa("openssl", [
      "req",
      "-x509",
      ...key,
      ...rest,
      ...(authority === undefined ? [] : [...usage, ...signed]),
    ]);
  }
}
