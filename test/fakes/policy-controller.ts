import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { bookmark, frameOf, type Told } from "./policy-events.ts";

const streamPath = "/apis/controlplane.pipette.io/v1/nodepolicies";
const antreaPath = "/apis/controlplane.antrea.io/v1beta2/";
const antreaKinds: Readonly<Record<string, string>> = {
  networkpolicies: "NetworkPolicy",
  appliedtogroups: "AppliedToGroup",
  addressgroups: "AddressGroup",
};

interface Tls {
  readonly cert: string;
  readonly key: string;
}

/** For unit tests: a controller that tells watches what it is told to. */
export class PolicyControllerDouble implements AsyncDisposable {
  readonly #server: Server;
  readonly #listening: Promise<void>;
  readonly #scheme: "http" | "https";
  readonly #watches = new Map<ServerResponse, string | undefined>();
  /** What a watch hears first, before the bookmark. */
  state: readonly Told[] = [];
  annotations: Readonly<Record<string, string>> = {};
  /** A controller of Antrea's has three watches without order, and does not tell of computed pods. */
  isAntreas = false;
  /** What such a controller says of anything else: 403 to those who may not ask for it. */
  elsewhere = 404;
  /** Answers every request, as long as it is there. */
  refusal: number | undefined;
  /** Ends the initial set where it is `false`: nothing comes afterwards. */
  isComplete = true;
  readonly asked: string[] = [];
  readonly authorizations: (string | undefined)[] = [];
  /** Other objects that are asked for, by their paths without the query. */
  readonly objects = new Map<string, object>();
  /** What nodes have reported, by the path, with the newest report last. */
  readonly reports: { readonly path: string; readonly body: Record<string, unknown> }[] = [];

  private constructor(tls: Tls | undefined) {
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      this.authorizations.push(request.headers.authorization);
      if (request.method === "POST") void this.#take(request, response);
      else this.#answer(request.url ?? "", response);
    };
    this.#scheme = tls === undefined ? "http" : "https";
    this.#server = tls === undefined ? createPlainServer(answer) : createSecureServer(tls, answer);
    this.#listening = new Promise<void>((resolve) => void this.#server.listen(0, "127.0.0.1", resolve));
  }

  static async start(tls?: Tls): Promise<PolicyControllerDouble> {
    const controller = new PolicyControllerDouble(tls);
    await controller.#listening;
    return controller;
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}`;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get watches(): number {
    return this.#watches.size;
  }

  /** To the watches that it concerns. */
  tell(...told: readonly Told[]): void {
    for (const each of told) this.send(frameOf(each), each.kind);
  }

  /** Bytes as they are. @param kind absent: to all */
  send(bytes: Uint8Array, kind?: string): void {
    for (const [watch, of] of this.#watches)
      if (of === undefined || kind === undefined || kind.startsWith(of)) watch.write(bytes);
  }

  endWatches(): void {
    for (const watch of this.#watches.keys()) watch.end();
    this.#watches.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.endWatches();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => void this.#server.close(() => resolve()));
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await text(request)) as Record<string, unknown>;
    if (this.refusal !== undefined) {
      response.writeHead(this.refusal).end();
      return;
    }
    const { url = "" } = request;
    this.reports.push({ path: url.startsWith(antreaPath) ? url.slice(antreaPath.length) : url, body });
    response.writeHead(201, { "content-type": "application/json" }).end("{}");
  }

  #answer(url: string, response: ServerResponse): void {
    this.asked.push(url);
    const { pathname } = new URL(url, "http://any");
    const object = this.objects.get(pathname);
    if (object !== undefined) {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(object));
      return;
    }
    const kind = pathname.startsWith(antreaPath) ? antreaKinds[pathname.slice(antreaPath.length)] : undefined;
    const status =
      this.refusal ?? ((this.isAntreas ? kind !== undefined : pathname === streamPath) ? 200 : this.elsewhere);
    response.writeHead(status, { "content-type": "application/vnd.kubernetes.protobuf;stream=watch" });
    if (status !== 200) {
      response.end();
      return;
    }
    response.flushHeaders();
    this.#watches.set(response, kind);
    response.on("close", () => this.#watches.delete(response));
    for (const told of this.state) if (kind === undefined || told.kind === kind) response.write(frameOf(told));
    if (this.isComplete) response.write(frameOf(bookmark(this.annotations)));
  }
}
