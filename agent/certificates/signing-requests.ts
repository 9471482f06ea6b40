import { createHash, createPrivateKey, createPublicKey } from "node:crypto";
import { makeRequest, tunnelCertificate } from "../../shared/certificates/mod.ts";
import { type ApiClient, ApiError, type ApiObject, mapIn, mapsIn, textIn } from "../../shared/kubernetes/mod.ts";

/** What has become of a request. */
export type Answer =
  | { readonly t: "waiting"; readonly isApproved: boolean }
  | { readonly t: "refused"; readonly reason: string }
  /** In PEM, as it came. */
  | { readonly t: "signed"; readonly certificate: string };

const collection = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const { signerName, organization, usage, configMap } = tunnelCertificate;
/** Of a name of the API server's. */
const mostNodeChars = 180;
const maxReasonChars = 500;
/** Certificates hold from five minutes before they are signed. */
const toldSkewMs = 60_000;

/** A node's requests at the API server (certificates.k8s.io/v1), and whom it is to trust. */
export class SigningRequests {
  readonly #client: ApiClient;
  readonly #node: string;
  readonly #namespace: string;
  readonly #lifetimeS: number;
  /** By how much the API server's clock is ahead of ours; negative: behind. */
  #skewMs = 0;

  constructor(
    client: ApiClient,
    { node, namespace, lifetimeS }: { readonly node: string; readonly namespace: string; readonly lifetimeS: number },
  ) {
    this.#client = client;
    this.#node = node;
    this.#namespace = namespace;
    this.#lifetimeS = lifetimeS;
  }

  /** How far this node's clock was off when it last asked, in a sentence, where that is much. */
  get skew(): string | undefined {
    if (Math.abs(this.#skewMs) < toldSkewMs) return undefined;
    const seconds = Math.round(Math.abs(this.#skewMs) / 1000);
    return `this node's clock was ${seconds} s ${this.#skewMs > 0 ? "behind" : "ahead of"} the API server's when it asked`;
  }

  /** All that the controller has published. @throws {Error} where there is nothing yet */
  async authorities(): Promise<string> {
    const path = `/api/v1/namespaces/${this.#namespace}/configmaps/${configMap}`;
    const what = `configmap "${configMap}" in namespace "${this.#namespace}"`;
    const ca = textIn(mapIn(await this.#client.get({ path, action: `get ${what}` }), "data"), "ca.crt");
    if (ca === undefined) throw new Error(`${what} has no "ca.crt", wanted a controller that signs ("--sign-ipsec")`);
    return ca;
  }

  /**
   * Asks for a certificate of this key, where nobody has done so yet. Its name follows from the key, so that one that was
   * asked for before a restart is found again.
   * @throws {ApiError}
   */
  async ask(privateKey: string): Promise<Answer> {
    const name = this.#nameOf(privateKey);
    return answerIn((await this.#get(name)) ?? (await this.#create(name, privateKey)));
  }

  async #get(name: string): Promise<ApiObject | undefined> {
    try {
      return await this.#client.get({
        path: `${collection}/${name}`,
        action: `get certificatesigningrequest "${name}"`,
      });
    } catch (caught) {
      if (caught instanceof ApiError && caught.status === 404) return undefined;
      throw caught;
    }
  }

  async #create(name: string, privateKey: string): Promise<ApiObject> {
    const text = makeRequest(organization, this.#node, createPrivateKey(privateKey));
    const action = `create certificatesigningrequest "${name}"`;
    const created = await this.#client.create(
      { path: collection, action },
      {
        ...{ apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name } },
        spec: {
          ...{ request: btoa(text), signerName, usages: [usage], expirationSeconds: this.#lifetimeS },
        },
      },
    );
    const madeMs = Date.parse(textIn(mapIn(created, "metadata"), "creationTimestamp") ?? "");
    if (!Number.isNaN(madeMs)) this.#skewMs = madeMs - Date.now();
    return created;
  }

  #nameOf(privateKey: string): string {
    const key = createPublicKey(privateKey).export({ type: "spki", format: "der" });
    const hash = createHash("sha256").update(key).digest("hex").slice(0, 32);
    return `pipette-ipsec-${this.#node.slice(0, mostNodeChars)}-${hash}`;
  }
}

function answerIn(request: ApiObject): Answer {
  const status = mapIn(request, "status");
  const conditions = mapsIn(status, "conditions");
  const no = conditions.find(({ type }) => type === "Denied" || type === "Failed");
  if (no !== undefined) {
    const [reason, message] = [textIn(no, "reason") ?? "no reason", textIn(no, "message") ?? "without a word"];
    return { t: "refused", reason: `${reason}: ${message}`.slice(0, maxReasonChars) };
  }
  const certificate = textIn(status, "certificate");
  if (certificate === undefined)
    return { t: "waiting", isApproved: conditions.some(({ type }) => type === "Approved") };
  try {
    return { t: "signed", certificate: new TextDecoder().decode(Uint8Array.fromBase64(certificate)) };
  } catch {
    return { t: "signed", certificate: "" };
  }
}
