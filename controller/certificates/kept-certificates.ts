import { type CertificateSource, type Kept, renewed, type Serving } from "../../shared/certificates/mod.ts";
import type { ApiClient } from "../../shared/kubernetes/mod.ts";
import { KeptSecret, type SecretPlace } from "./kept-secret.ts";

const authorityName = "pipette-controller-ca";

/** Certificates that are made here and kept in a Secret, so that restarts and other replicas show the same. */
export class KeptCertificates implements CertificateSource {
  readonly #secret: KeptSecret<Kept>;
  readonly #names: readonly string[];
  readonly #now: () => Date;

  /** @param names under which clients reach the server, DNS names and addresses */
  constructor(client: ApiClient, place: SecretPlace, names: readonly string[], now = () => new Date()) {
    const files = { cert: "tls.crt", key: "tls.key", ca: "ca.crt", caKey: "ca.key" };
    this.#secret = new KeptSecret(client, place, "kubernetes.io/tls", files);
    this.#names = names;
    this.#now = now;
  }

  current(): Promise<Serving> {
    return this.#secret.renewed((kept) => renewed(kept, { authority: authorityName, names: this.#names }, this.#now()));
  }
}
