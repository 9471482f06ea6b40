/**
 * For unit tests only: an API server that says what it is told to, in the words of the Kubernetes API (v1). No real one
 * was at hand to record from: the shapes are those of its reference.
 */
export class ScriptedApiServer implements AsyncDisposable {
  readonly #server: Bun.Server<undefined>;
  readonly #watches = new Set<ReadableStreamDefaultController<Uint8Array>>();
  /** What was asked, in order: `GET /api/v1/nodes?limit=100`. */
  readonly asked: string[] = [];
  readonly authorizations = new Set<string | null>();
  /** By name. */
  readonly nodes = new Map<string, Record<string, unknown>>();
  /** Answers the next requests, each once. */
  readonly refusals: { readonly status: number; readonly message: string }[] = [];
  version = 100;
  /** Watches from before this version are refused. */
  compactedBelow = 0;
  pageSize = 100;

  constructor(tls?: { readonly cert: string; readonly key: string }) {
    this.#server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 0,
      fetch: (request) => this.#answer(request),
      ...(tls === undefined ? {} : { tls }),
    });
  }

  get url(): string {
    return `${this.#server.protocol}://127.0.0.1:${this.#server.port}`;
  }

  get watches(): number {
    return this.#watches.size;
  }

  put(name: string, podCIDRs: readonly string[], address: string, more: object = {}): void {
    const type = this.nodes.has(name) ? "MODIFIED" : "ADDED";
    this.nodes.set(name, {
      kind: "Node",
      apiVersion: "v1",
      metadata: { name, uid: `uid-of-${name}`, resourceVersion: String(++this.version), annotations: {}, labels: {} },
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
    this.event(type, this.nodes.get(name) ?? {});
  }

  delete(name: string): void {
    const node = this.nodes.get(name);
    this.nodes.delete(name);
    const metadata = { ...(node?.["metadata"] as object), resourceVersion: String(++this.version) };
    this.event("DELETED", { ...node, metadata });
  }

  bookmark(): void {
    this.event("BOOKMARK", { kind: "Node", metadata: { resourceVersion: String(this.version) } });
  }

  event(type: string, object: object): void {
    this.send(`${JSON.stringify({ type, object })}\n`);
  }

  /** To all watches, as it is. */
  send(text: string): void {
    for (const watch of this.#watches) watch.enqueue(new TextEncoder().encode(text));
  }

  /** Ends all watches, as the server does after a while. */
  endWatches(): void {
    for (const watch of this.#watches) watch.close();
    this.#watches.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop(true);
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams, search } = new URL(request.url);
    this.asked.push(`${request.method} ${pathname}${search}`);
    this.authorizations.add(request.headers.get("authorization"));
    const refusal = this.refusals.shift();
    if (refusal !== undefined) return status(refusal.status, refusal.message);
    const name = /^\/api\/v1\/nodes\/([^/]+)$/.exec(pathname)?.[1];
    if (name !== undefined) return this.#one(name, request);
    if (searchParams.get("watch") === "true") return this.#watch(Number(searchParams.get("resourceVersion")));
    const from = Number(searchParams.get("continue") ?? "0");
    const items = [...this.nodes.values()].slice(from, from + this.pageSize);
    const next = from + items.length < this.nodes.size ? { continue: String(from + items.length) } : {};
    return Response.json({ kind: "NodeList", metadata: { resourceVersion: String(this.version), ...next }, items });
  }

  async #one(name: string, request: Request): Promise<Response> {
    const node = this.nodes.get(name);
    if (node === undefined) return status(404, `nodes "${name}" not found`);
    if (request.method === "PATCH") {
      const patch = (await request.json()) as { metadata: { annotations: object } };
      const metadata = node["metadata"] as { annotations: object };
      const annotations = { ...metadata.annotations, ...patch.metadata.annotations };
      this.nodes.set(name, {
        ...node,
        metadata: { ...metadata, annotations, resourceVersion: String(++this.version) },
      });
      this.event("MODIFIED", this.nodes.get(name) ?? {});
    }
    return Response.json(this.nodes.get(name));
  }

  #watch(version: number): Response {
    const goneObject = {
      kind: "Status",
      code: 410,
      reason: "Expired",
      message: `too old resource version: ${version}`,
    };
    let own: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        own = controller;
        if (version >= this.compactedBelow) {
          this.#watches.add(controller);
          // Some byte has to go out before the client hears of the answer at all.
          controller.enqueue(new TextEncoder().encode("\n"));
          return;
        }
        controller.enqueue(new TextEncoder().encode(`${JSON.stringify({ type: "ERROR", object: goneObject })}\n`));
        controller.close();
      },
      cancel: () => {
        if (own !== undefined) this.#watches.delete(own);
      },
    });
    return new Response(body, { headers: { "content-type": "application/json" } });
  }
}

const status = (code: number, message: string): Response =>
  Response.json({ kind: "Status", apiVersion: "v1", status: "Failure", code, message }, { status: code });
