import { type ApiClient, ApiError, type ApiObject, mapIn, textIn } from "../../shared/kubernetes/mod.ts";

export interface SecretPlace {
  readonly namespace: string;
  readonly name: string;
}

/** Whoever comes second reads what the first has written. */
const maxAttempts = 5;

/**
 * Texts in a Secret, made by whichever of several controllers comes first. No lease: the Secret's own version says who
 * that was.
 */
export class KeptSecret<T extends { readonly [Key in keyof T]: string }> {
  readonly #client: ApiClient;
  readonly #place: SecretPlace;
  readonly #type: string;
  readonly #files: Readonly<Record<keyof T & string, string>>;

  /** @param files under which key of the Secret each text stands */
  constructor(client: ApiClient, place: SecretPlace, type: string, files: Readonly<Record<keyof T & string, string>>) {
    this.#client = client;
    this.#place = place;
    this.#type = type;
    this.#files = files;
  }

  /**
   * What is kept now, written where `renew` answers something else than it was given.
   * @throws {ApiError}
   */
  async renewed(renew: (kept: T | undefined) => T): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const secret = await this.#read();
      const kept = secret === undefined ? undefined : this.#textsIn(secret);
      const wanted = renew(kept);
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

  /** What cannot be read counts as absent, and is made anew. */
  #textsIn(secret: ApiObject): T {
    const data = mapIn(secret, "data");
    const text = (file: string): string => {
      try {
        return new TextDecoder().decode(Uint8Array.fromBase64(textIn(data, file) ?? ""));
      } catch {
        return "";
      }
    };
    const entries = Object.entries<string>(this.#files).map(([key, file]) => [key, text(file)]);
    return Object.fromEntries(entries) as T;
  }

  async #write(before: ApiObject | undefined, texts: T): Promise<void> {
    const { namespace, name } = this.#place;
    const version = textIn(mapIn(before ?? {}, "metadata"), "resourceVersion");
    const secret = {
      kind: "Secret",
      apiVersion: "v1",
      metadata: { namespace, name, ...(version === undefined ? {} : { resourceVersion: version }) },
      type: this.#type,
      data: Object.fromEntries(
        Object.entries<string>(this.#files).map(([key, file]) => [
          file,
          new TextEncoder().encode(texts[key as keyof T]).toBase64(),
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
