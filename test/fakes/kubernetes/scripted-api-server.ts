import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/**
 * An API server that says what it is told to, in the words of the Kubernetes API (v1), and as one of
 * Kubernetes 1.35 says them, to which `test/kubernetes/scripted-server.test.ts` holds it: the headers of a watch go out
 * at once and by themselves, its events one line each in a chunk, from the version on that was asked for. A bookmark
 * comes each minute and two seconds before the watch ends, if anything has happened since it began.
 */
export class ScriptedApiServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #listening: Promise<void>;
  readonly #scheme: string;
  readonly #watches = new Map<ServerResponse, Watch>();
  /** Watches that were asked for while it was mute. */
  readonly #unanswered = new Set<ServerResponse>();
  /** What happened, for watches that come later. */
  readonly #history: { readonly plural: string; readonly version: number; readonly line: string }[] = [];
  #bookmarking: ReturnType<typeof setInterval> | undefined;
  /** What was asked, in order: `GET /api/v1/nodes?limit=100`. */
  readonly asked: string[] = [];
  readonly authorizations = new Set<string | null>();
  /** By name. */
  readonly nodes = new Map<string, Record<string, unknown>>();
  /** Other objects than nodes, by the plural of their kind. */
  readonly objects = new Map<string, readonly ScriptedObject[]>();
  /** Answers to whatever else is asked, by path. */
  readonly answers = new Map<string, object>();
  /** Answers the next requests, each once. */
  readonly refusals: { readonly status: number; readonly message: string }[] = [];
  /** Answers every request, as long as it is there. */
  refusal: { readonly status: number; readonly message: string } | undefined;
  version = 100;
  /** Watches from before this version are refused. */
  compactedBelow = 0;
  pageSize = 100;
  /** How many bookmarks were sent to watches. */
  bookmarks = 0;
  /** Watches that come now get no answer, not even headers. */
  mute = false;

  private constructor(tls?: { readonly cert: string; readonly key: string }) {
    const answer = (request: IncomingMessage, response: ServerResponse): void => void this.#answer(request, response);
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server = tls === undefined ? createPlainServer(answer) : createSecureServer(tls, answer);
    this.#listening = new Promise((resolve) => void this.#server.listen(0, "127.0.0.1", resolve));
    this.bookmarkMs = 60_000;
  }

  static async start(tls?: { readonly cert: string; readonly key: string }): Promise<ScriptedApiServer> {
    const server = new ScriptedApiServer(tls);
    await server.#listening;
    return server;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get watches(): number {
    return this.#watches.size;
  }

  /** How often watches hear of the version, also where nothing changes. */
  set bookmarkMs(everyMs: number) {
    clearInterval(this.#bookmarking);
    this.#bookmarking = setInterval(() => this.bookmark(), everyMs);
  }

  put(name: string, podCIDRs: readonly string[], address: string, more: object = {}): void {
    const type = this.nodes.has(name) ? "MODIFIED" : "ADDED";
    this.nodes.set(name, {
      kind: "Node",
      apiVersion: "v1",
      metadata: { name, uid: `uid-of-${name}`, resourceVersion: String(++this.version) },
      spec: podCIDRs.length === 0 ? {} : { podCIDR: podCIDRs[0], podCIDRs },
      status: {
        addresses: [
          { type: "Hostname", address: name },
          { type: "InternalIP", address },
        ],
        conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
      },
      ...more,
    });
    this.#happened("nodes", type, this.nodes.get(name) ?? {});
  }

  delete(name: string): void {
    const node = this.nodes.get(name);
    this.nodes.delete(name);
    const metadata = { ...(node?.["metadata"] as object), resourceVersion: String(++this.version) };
    this.#happened("nodes", "DELETED", { ...node, metadata });
  }

  /** An object of another kind, new or instead of the one of its name. */
  putObject(plural: string, { metadata, ...object }: ScriptedObject): void {
    const others = this.#without(plural, metadata);
    const type = others.length === (this.objects.get(plural) ?? []).length ? "ADDED" : "MODIFIED";
    const made = { ...object, metadata: { ...metadata, resourceVersion: String(++this.version) } };
    this.objects.set(plural, [...others, made]);
    this.#happened(plural, type, made);
  }

  deleteObject(plural: string, { metadata, ...object }: ScriptedObject): void {
    this.objects.set(plural, this.#without(plural, metadata));
    this.#happened(plural, "DELETED", {
      ...object,
      metadata: { ...metadata, resourceVersion: String(++this.version) },
    });
  }

  #without(plural: string, { namespace, name }: ScriptedObject["metadata"]): readonly ScriptedObject[] {
    const all = this.objects.get(plural) ?? [];
    return all.filter(({ metadata }) => metadata.name !== name || metadata.namespace !== namespace);
  }

  /** Only where something has happened since a watch began: else it hears nothing at all. */
  bookmark(): void {
    const hearing = [...this.#watches].filter(([, { bookmarksFrom }]) => this.version >= bookmarksFrom);
    if (hearing.length > 0) this.bookmarks++;
    for (const [watch] of hearing) watch.write(this.#bookmark());
  }

  /** To all watches, as it is. */
  send(line: string): void {
    for (const watch of this.#watches.keys()) watch.write(line);
  }

  /** Ends all watches, as the server does after a while. */
  endWatches(): void {
    for (const watch of this.#watches.keys()) watch.end();
    for (const watch of this.#unanswered) watch.destroy();
    this.#watches.clear();
    this.#unanswered.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#bookmarking);
    this.endWatches();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }

  #happened(plural: string, type: string, object: object): void {
    const line = lineOf(type, object);
    this.#history.push({ plural, version: this.version, line });
    for (const [watch, of] of this.#watches) if (of.plural === plural) watch.write(line);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams, search } = new URL(request.url ?? "", "http://any");
    this.asked.push(`${request.method} ${pathname}${search}`);
    this.authorizations.add(request.headers.authorization ?? null);
    const refusal = this.refusals.shift() ?? this.refusal;
    if (refusal !== undefined) return refuse(response, refusal.status, refusal.message);
    const name = /^\/api\/v1\/nodes\/([^/]+)$/.exec(pathname)?.[1];
    const answer = this.answers.get(pathname);
    if (answer !== undefined) return say(response, request.method === "POST" ? 201 : 200, answer);
    const [, namespace, plural = ""] = listPath.exec(pathname) ?? [];
    const isOther = this.objects.size > 0 && plural !== "nodes" && name === undefined;
    // Whoever watches others hears of nodes, which are none to him.
    if (isOther && searchParams.get("watch") !== "true") return this.#others(plural, namespace, searchParams, response);
    if (name !== undefined) return this.#one(name, request, response);
    if (searchParams.get("watch") === "true") return this.#watch("nodes", searchParams, response);
    const wanted = selected([...this.nodes.values()] as unknown as ScriptedObject[], searchParams);
    const from = Number(searchParams.get("continue") ?? "0");
    if (Number.isNaN(from)) return refuse(response, 400, "invalid continue token: continue key is not valid");
    // Of objects in a list nobody says of what kind each is.
    const all = wanted.map(({ kind: _, apiVersion: __, ...node }: Record<string, unknown>) => node);
    const size = Math.min(this.pageSize, Number(searchParams.get("limit") ?? all.length));
    const items = all.slice(from, from + size);
    const remaining = all.length - from - items.length;
    const more = remaining === 0 ? {} : { continue: String(from + size), remainingItemCount: remaining };
    const metadata = { resourceVersion: String(this.version), ...more };
    say(response, 200, { kind: "NodeList", apiVersion: "v1", metadata, items });
  }

  /** In one page. */
  #others(plural: string, namespace: string | undefined, query: URLSearchParams, response: ServerResponse): void {
    const all = this.objects.get(plural);
    if (all === undefined) {
      refuse(response, 404, "the server could not find the requested resource");
      return;
    }
    if (query.get("watch") === "true") {
      this.#watch(plural, query, response);
      return;
    }
    const items = selected(all, query).filter(
      ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
    );
    say(response, 200, { kind: "List", metadata: { resourceVersion: String(this.version) }, items });
  }

  async #one(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const node = this.nodes.get(name);
    if (node === undefined) return refuse(response, 404, `nodes "${name}" not found`, { name, kind: "nodes" });
    if (request.method === "PATCH") {
      const patch = JSON.parse(await text(request)) as { metadata: { annotations: object } };
      const metadata = node["metadata"] as { annotations?: object };
      const annotations = { ...metadata.annotations, ...patch.metadata.annotations };
      this.nodes.set(name, {
        ...node,
        metadata: { ...metadata, annotations, resourceVersion: String(++this.version) },
      });
      this.#happened("nodes", "MODIFIED", this.nodes.get(name) ?? {});
    }
    say(response, 200, this.nodes.get(name) ?? {});
  }

  #watch(plural: string, asked: URLSearchParams, response: ServerResponse): void {
    const version = Number(asked.get("resourceVersion"));
    response.on("close", () => {
      this.#watches.delete(response);
      this.#unanswered.delete(response);
    });
    if (this.mute) return void this.#unanswered.add(response);
    response.writeHead(200, headers);
    response.flushHeaders();
    if (version < this.compactedBelow) {
      response.end(lineOf("ERROR", statusOf(410, `too old resource version: ${version} (${this.compactedBelow})`)));
      return;
    }
    for (const event of this.#history)
      if (event.plural === plural && event.version > version) response.write(event.line);
    const hears = asked.get("allowWatchBookmarks") === "true";
    const bookmarksFrom = hears ? Math.max(version, this.version) + 1 : Number.POSITIVE_INFINITY;
    this.#watches.set(response, { plural, bookmarksFrom });
    this.#endAfter(Number(asked.get("timeoutSeconds") ?? "1800"), response, bookmarksFrom);
  }

  /** With a last bookmark before, so that whoever watched goes on from there. */
  #endAfter(seconds: number, watch: ServerResponse, bookmarksFrom: number): void {
    const sayWhere = () => this.version >= bookmarksFrom && watch.write(this.#bookmark());
    const last = setTimeout(sayWhere, (seconds - lastBookmarkS) * 1000);
    const end = setTimeout(() => watch.end(), seconds * 1000);
    watch.on("close", () => {
      clearTimeout(last);
      clearTimeout(end);
    });
  }

  #bookmark(): string {
    const metadata = { resourceVersion: String(this.version) };
    const status = { daemonEndpoints: { kubeletEndpoint: { Port: 0 } }, nodeInfo: { machineID: "" } };
    return lineOf("BOOKMARK", { kind: "Node", apiVersion: "v1", metadata, spec: {}, status });
  }
}

interface Watch {
  /** The kind that it hears of. */
  readonly plural: string;
  /** The version from which on it hears bookmarks; there are watches that hear none. */
  readonly bookmarksFrom: number;
}

/** An object of the API, as far as requests select by it. */
export type ScriptedObject = {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly [more: string]: unknown;
  };
  readonly status?: { readonly podIPs?: readonly { readonly ip: string }[]; readonly [more: string]: unknown };
  readonly [more: string]: unknown;
};

const listPath = /^\/apis?\/(?:[a-z0-9.]+\/)?v1\/(?:namespaces\/([^/]+)\/)?([a-z]+)$/;

/** By one field, or one label. */
function selected<T extends ScriptedObject>(objects: readonly T[], query: URLSearchParams): readonly T[] {
  const [field, is] = (query.get("fieldSelector") ?? "").split("=");
  const [label = "", value] = (query.get("labelSelector") ?? "").split("=");
  return objects.filter(({ metadata, status }) => {
    if (field === "metadata.name" && metadata.name !== is) return false;
    if (field === "status.podIP" && status?.podIPs?.[0]?.ip !== is) return false;
    return label === "" || metadata.labels?.[label] === value;
  });
}

const headers = { "content-type": "application/json", "cache-control": "no-cache, private" } as const;
/** Before the end of a watch. */
const lastBookmarkS = 2;

const lineOf = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`;

const reasons: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  410: "Expired",
};

const statusOf = (code: number, message: string, details?: object): object => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message,
  ...(code in reasons ? { reason: reasons[code] } : {}),
  ...(details === undefined ? {} : { details }),
  code,
});

function say(response: ServerResponse, status: number, body: object): void {
  const bytes = new TextEncoder().encode(`${JSON.stringify(body)}\n`);
  response.writeHead(status, { ...headers, "content-length": bytes.length });
  response.end(bytes);
}

const refuse = (response: ServerResponse, code: number, message: string, details?: object): void =>
  say(response, code, statusOf(code, message, details));
