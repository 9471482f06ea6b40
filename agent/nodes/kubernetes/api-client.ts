import { readFile } from "node:fs/promises";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { parseJson } from "../../../shared/json.ts";
import { isObject, show } from "../../../shared/json-fields.ts";

export interface ApiOptions {
  /** `https://HOST:PORT`; absent: what a pod is told of its own cluster. */
  readonly server?: string;
  /** Files: who this is, and who signs the server's certificate. They are rotated, so each request reads them. */
  readonly token?: string;
  readonly ca?: string;
}

const inCluster = "/var/run/secrets/kubernetes.io/serviceaccount";
/** A page of a hundred Nodes, each with its images and conditions. */
const mostAnswerBytes = 32 * 1024 * 1024;
/** One event of a watch; the API server itself takes objects of 1.5 MiB at most. */
const mostLineBytes = 4 * 1024 * 1024;
/** One answer as a whole; of a watch its headers. */
export const requestMs = 10_000;
/** Of what the server says about a refusal. */
const mostReasonChars = 300;

/** When a connection counts as dead. */
export interface Silences {
  /** Until the headers of the answer have come. */
  readonly answerMs: number;
  /** From then on, between two words. */
  readonly silenceMs: number;
}

/** The server's answer where it is none of the good ones. */
export class ApiRefusal extends Error {
  override readonly name = "ApiRefusal";
  readonly status: number;

  constructor(status: number, reason: string) {
    super(`the API server answers ${status}: ${reason}`);
    this.status = status;
  }
}

/** JSON over HTTP with the API server of Kubernetes: nothing but what Nodes need. */
export class ApiClient {
  readonly server: string;
  readonly #options: ApiOptions;

  /** @throws {CniError} code 7 where nothing says where the server is */
  constructor(options: ApiOptions, env: Readonly<Record<string, string | undefined>>) {
    this.#options = options;
    const [host, port] = [env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"] ?? "443"];
    const own = host === undefined ? undefined : `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
    const server = options.server ?? own;
    if (server === undefined)
      throw new CniError(
        CniCode.invalidConfig,
        'Cannot use the registry of Kubernetes: nothing says where the API server is, wanted "nodes.registry.server", or a pod of the cluster',
      );
    this.server = server;
  }

  /** @throws {ApiRefusal | Error} */
  async get(path: string): Promise<Record<string, unknown>> {
    const response = await this.#fetch(path, {}, AbortSignal.timeout(requestMs));
    return await documentOf(response);
  }

  /** A merge patch (RFC 7386). @throws {ApiRefusal | Error} */
  async patch(path: string, body: object): Promise<Record<string, unknown>> {
    const headers = { "content-type": "application/merge-patch+json" };
    const init = { method: "PATCH", headers, body: JSON.stringify(body) };
    return await documentOf(await this.#fetch(path, init, AbortSignal.timeout(requestMs)));
  }

  /**
   * Objects that come one by one, a line each, until the server ends the stream.
   * @param opened hears that the server has begun it
   * @throws {ApiRefusal | Error}
   */
  async *lines(
    path: string,
    silences: Silences,
    signal: AbortSignal,
    opened?: () => void,
  ): AsyncGenerator<Record<string, unknown>, void> {
    const { answerMs, silenceMs } = silences;
    const silent = new AbortController();
    const giveUpAfter = (ms: number, is: string) =>
      setTimeout(() => silent.abort(new Error(`the API server ${is}`)), ms);
    let timer = giveUpAfter(answerMs, `gave no answer within ${answerMs} ms`);
    const heard = (): void => {
      clearTimeout(timer);
      timer = giveUpAfter(silenceMs, `was silent for ${silenceMs} ms`);
    };
    try {
      const response = await this.#fetch(path, {}, AbortSignal.any([signal, silent.signal]));
      // The headers of a watch come at once, and where nothing changes its first line is a bookmark a minute later.
      heard();
      opened?.();
      const decoder = new TextDecoder();
      let rest = "";
      for await (const chunk of response.body ?? []) {
        heard();
        const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) if (line.trim() !== "") yield parsed(line);
        if (rest.length > mostLineBytes) throw new Error(`an event has more than ${mostLineBytes} bytes`);
      }
    } finally {
      clearTimeout(timer);
      silent.abort();
    }
  }

  async #fetch(path: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    const secure = this.server.startsWith("https:");
    const headers = new Headers(init.headers);
    headers.set("accept", "application/json");
    // Whoever could read it on the way could be this node from then on.
    if (secure) headers.set("authorization", `Bearer ${await this.#token()}`);
    const ca = secure ? await readFile(this.#options.ca ?? `${inCluster}/ca.crt`, "utf8") : undefined;
    // Both said here, no variable of the environment can say otherwise: believe any server, or print the token.
    const tls = ca === undefined ? {} : { tls: { ca, rejectUnauthorized: true } };
    const own = { ...tls, verbose: false };
    const response = await fetch(`${this.server}${path}`, { ...init, headers, signal, redirect: "error", ...own });
    if (response.ok) return response;
    const text = await boundedText(response, 64 * 1024).catch(() => "");
    throw new ApiRefusal(response.status, reasonIn(text) || response.statusText);
  }

  async #token(): Promise<string> {
    const path = this.#options.token ?? `${inCluster}/token`;
    const token = (await readFile(path, "utf8")).trim();
    if (/^[\x21-\x7e]{1,16384}$/.test(token)) return token;
    throw new Error(`"${path}" holds no token`);
  }
}

const documentOf = async (response: Response): Promise<Record<string, unknown>> =>
  parsed(await boundedText(response, mostAnswerBytes));

async function boundedText(response: Response, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > most) throw new Error(`the answer has more than ${most} bytes`);
  }
  return text;
}

function parsed(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    throw new Error(`the answer is no JSON: ${show(text)}`);
  }
  if (isObject(value)) return value;
  throw new Error(`the answer is ${show(value)}, wanted an object`);
}

/** `message` of the Status that the server sends with a refusal. */
function reasonIn(text: string): string {
  try {
    const { message } = parsed(text);
    return typeof message === "string" ? message.slice(0, mostReasonChars) : "";
  } catch {
    return "";
  }
}
