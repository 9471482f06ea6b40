import { parseJson } from "../schema/json.ts";
import { isObject, show } from "../schema/json-fields.ts";
import type { ClusterAccess } from "./access.ts";
import { ApiError, refusalOf } from "./api-error.ts";
import { Connection } from "./connection.ts";
import { decodeEnvelope, type FieldTable } from "./protobuf.ts";
import type { ApiObject } from "./resource.ts";
import { type ApiAnswer, type ApiRequest, Patience, type Transport, transportReason } from "./transport.ts";

export interface ApiClientOptions {
  /** For HTTPS_PROXY and its like. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Absent: as the access says. */
  readonly transport?: Transport;
}

/** One request. */
export interface Ask {
  /** `/api/v1/nodes?limit=100`. */
  readonly path: string;
  /** `list nodes`: for the error. */
  readonly action: string;
  /** Absent: JSON. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /**
   * Headers for whom the API server passes the request on to. What that one answers is said of these, and never of our
   * credentials: they are not renewed for it.
   */
  readonly passed?: Readonly<Record<string, string>>;
}

/** As `kubectl patch --type` knows them. */
export const patchTypes = {
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
} as const;

/** Until the headers of an answer have come. */
export const answerMs = 10_000;
/** Until the whole answer has come: the API server itself gives up after 60 s. */
const wholeMs = 60_000;
/**
 * The largest answer: a page of five hundred objects, each at most 1.5 MiB. No page that we measured was over 10 MB.
 */
const maxAnswerBytes = 64 * 1024 * 1024;
const maxRefusalBytes = 64 * 1024;

/** Requests to one API server over one connection, for lists, watches and single objects. */
export class ApiClient implements AsyncDisposable {
  readonly server: string;
  readonly #access: ClusterAccess;
  readonly #transport: Transport;

  constructor(access: ClusterAccess, { env = {}, transport }: ApiClientOptions = {}) {
    this.server = access.server;
    this.#access = access;
    this.#transport = transport ?? new Connection(access, env);
  }

  /** @param table the fields to decode of an answer in protobuf @throws {ApiError} */
  get(ask: Ask, table?: FieldTable): Promise<ApiObject> {
    return this.#whole("GET", ask, {}, undefined, table);
  }

  /** @throws {ApiError} */
  create(ask: Ask, body: object): Promise<ApiObject> {
    return this.#whole("POST", ask, { "content-type": "application/json" }, body);
  }

  /** @throws {ApiError} */
  replace(ask: Ask, body: object): Promise<ApiObject> {
    return this.#whole("PUT", ask, { "content-type": "application/json" }, body);
  }

  /** @throws {ApiError} */
  patch(ask: Ask, body: object, type: keyof typeof patchTypes = "merge"): Promise<ApiObject> {
    return this.#whole("PATCH", ask, { "content-type": patchTypes[type] }, body);
  }

  /** @throws {ApiError} */
  delete(ask: Ask): Promise<ApiObject> {
    return this.#whole("DELETE", ask, {});
  }

  /** A streamed answer, once its headers have come: a watch. @throws {ApiError} */
  async stream(
    ask: Ask,
    patience: Patience,
    withinMs: number,
    method: ApiRequest["method"] = "GET",
  ): Promise<ApiAnswer> {
    patience.last(withinMs, `gave no answer within ${withinMs} ms`);
    const signals = [patience.signal, ...(ask.signal === undefined ? [] : [ask.signal])];
    return await this.#answer({ ...ask, signal: AbortSignal.any(signals) }, method, {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#transport[Symbol.asyncDispose]();
  }

  async #whole(
    method: ApiRequest["method"],
    ask: Ask,
    headers: ApiRequest["headers"],
    body?: object,
    table?: FieldTable,
  ): Promise<ApiObject> {
    using patience = new Patience();
    patience.last(answerMs, `gave no answer within ${answerMs} ms`);
    const signal = AbortSignal.any([patience.signal, ...(ask.signal === undefined ? [] : [ask.signal])]);
    const answer = await this.#answer({ ...ask, signal }, method, headers, body);
    patience.last(wholeMs, `did not end its answer within ${wholeMs} ms`);
    try {
      const bytes = await bytesOf(answer, maxAnswerBytes);
      return isProtobuf(answer) ? decodeEnvelope(bytes, table ?? {}) : parsedObject(bytes);
    } catch (caught) {
      throw this.#errorOf(ask.action, caught);
    }
  }

  async #answer(
    ask: Ask & { readonly signal: AbortSignal },
    method: ApiRequest["method"],
    headers: ApiRequest["headers"],
    body?: object,
  ): Promise<ApiAnswer> {
    const { path, action, accept = "application/json", signal, passed = {} } = ask;
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    // A token sent without encryption could be read and used by others.
    const isSecure = this.server.startsWith("https:");
    const once = async (): Promise<ApiAnswer> => {
      const authorization = isSecure ? await this.#access.credentials.authorization() : undefined;
      const own = authorization === undefined ? {} : { authorization };
      // Compressing large answers would cost the server more than sending them.
      const all = { ...passed, ...headers, accept, "accept-encoding": "identity", "user-agent": "pipette", ...own };
      return await this.#transport.request({ method, path, headers: all, ...sent }, signal);
    };
    try {
      let answer = await once();
      if (isGranted(answer)) return answer;
      // Read before any other wait, because the body of an answer that is already complete is lost if it is read later.
      let said = await statusIn(answer);
      if (answer.status === 401 && isSecure && ask.passed === undefined && (await this.#access.credentials.renew())) {
        answer = await once();
        if (isGranted(answer)) return answer;
        said = await statusIn(answer);
      }
      throw refusalOf(action, answer.status, said, answer.header("retry-after"));
    } catch (caught) {
      throw this.#errorOf(action, caught);
    }
  }

  #errorOf(action: string, caught: unknown): ApiError {
    if (caught instanceof ApiError) return caught;
    return new ApiError({ action, is: transportReason(caught, this.server), cause: caught });
  }
}

const isGranted = ({ status }: ApiAnswer): boolean => status >= 200 && status < 300;

export const isProtobuf = (answer: ApiAnswer): boolean =>
  (answer.header("content-type") ?? "").startsWith("application/vnd.kubernetes.protobuf");

/** The `Status` of a refusal as JSON; it comes in protobuf if that was asked for. Empty if it cannot be read. */
async function statusIn(answer: ApiAnswer): Promise<string> {
  try {
    const bytes = await bytesOf(answer, maxRefusalBytes);
    return isProtobuf(answer) ? JSON.stringify(decodeEnvelope(bytes, {})) : new TextDecoder().decode(bytes);
  } catch {
    return "";
  }
}

/** @throws {Error} for a body that is longer */
export async function bytesOf({ body }: Pick<ApiAnswer, "body">, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > most) throw new Error(`the answer has more than ${most} bytes`);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** @throws {Error} for what is no JSON object, in a sentence */
export function parsedObject(bytes: Uint8Array): ApiObject {
  const text = new TextDecoder().decode(bytes);
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw new Error(`the answer is no JSON: ${show(text)}`);
  }
  if (isObject(value)) return value;
  throw new Error(`the answer is ${show(value)}, wanted an object`);
}
