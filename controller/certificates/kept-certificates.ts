import type { CertificateSource, Serving } from "../../shared/certificates/mod.ts";
import { type Kept, renewed } from "../../shared/certificates/mod.ts";
import { type ApiClient, ApiError, type ApiObject, mapIn, textIn } from "../../shared/kubernetes/mod.ts";

export interface SecretPlace {
  readonly namespace: string;
  readonly name: string;
}

const authorityName = "pipette-controller-ca";
/** Whoever comes second reads what the first has written. */
const maxAttempts = 5;

/**
 * Certificates that are made here and kept in a Secret, so that restarts and other replicas show the same. No lease: the
 * Secret's own version says who was first.
 */
export class KeptCertificates implements CertificateSource {
  readonly #client: ApiClient;
  readonly #place: SecretPlace;
  readonly #names: readonly string[];
  readonly #now: () => Date;

  /** @param names under which clients reach the server, DNS names and addresses */
  constructor(client: ApiClient, place: SecretPlace, names: readonly string[], now = () => new Date()) {
    this.#client = client;
    this.#place = place;
    this.#names = names;
    this.#now = now;
  }

  async current(): Promise<Serving> {
    for (let attempt = 1; ; attempt++) {
      const secret = await this.#read();
      const kept = secret === undefined ? undefined : readKept(secret);
      const wanted = renewed(kept, { authority: authorityName, names: this.#names }, this.#now());
      if (wanted === kept) return wanted;
      try {
        await this.#write(secret, wanted);
        return wanted;
      } catch (caught) {
        const isLate = caught instanceof ApiError && caught.status === 409;
        if (!isLate || attempt === maxAttempts) throw caught;
      }
    }
  }

  async #read(): Promise<ApiObject | undefined> {
    try {
      return await this.#client.get({ path: this.#path, action: this.#action("read") });
    } catch (caught) {
      if (caught instanceof ApiError && caught.status === 404) return undefined;
      throw caught;
    }
  }

  async #write(before: ApiObject | undefined, { cert, key, ca, caKey }: Kept): Promise<void> {
    const { namespace, name } = this.#place;
    const version = textIn(mapIn(before ?? {}, "metadata"), "resourceVersion");
    const secret = {
      kind: "Secret",
      apiVersion: "v1",
      metadata: { namespace, name, ...(version === undefined ? {} : { resourceVersion: version }) },
      type: "kubernetes.io/tls",
      data: Object.fromEntries(
        Object.entries({ "tls.crt": cert, "tls.key": key, "ca.crt": ca, "ca.key": caKey }).map(([file, text]) => [
          file,
          new TextEncoder().encode(text).toBase64(),
        ]),
      ),
    };
    if (before !== undefined) await this.#client.replace({ path: this.#path, action: this.#action("write") }, secret);
    else {
      const path = `/api/v1/namespaces/${namespace}/secrets`;
      await this.#client.create({ path, action: this.#action("create") }, secret);
    }
  }

  get #path(): string {
    return `/api/v1/namespaces/${this.#place.namespace}/secrets/${this.#place.name}`;
  }

  #action(verb: string): string {
    return `${verb} secret "${this.#place.name}" in namespace "${this.#place.namespace}"`;
  }
}

/** What cannot be read counts as absent, and is made anew. */
function readKept(secret: ApiObject): Kept {
  const data = mapIn(secret, "data");
  const text = (key: string): string => {
    try {
      return new TextDecoder().decode(Uint8Array.fromBase64(textIn(data, key) ?? ""));
    } catch {
      return "";
    }
  };
  return { cert: text("tls.crt"), key: text("tls.key"), ca: text("ca.crt"), caKey: text("ca.key") };
}
