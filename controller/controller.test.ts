import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLogger } from "../shared/log.ts";
import { Certificates } from "../test/support/certificates.ts";
import { eventually } from "../test/support/eventually.ts";
import { describeWith } from "../test/support/requires.ts";
import { scratchDir } from "../test/support/scratch-dir.ts";
import { Controller } from "./controller.ts";

/** An API server with one policy, as far as a controller asks it. */
class ApiServer implements Disposable {
  /** Kinds that it does not tell of now. */
  readonly withheld = new Set<string>();
  readonly published: unknown[] = [];
  readonly #server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: (request) => this.#answer(request) });
  readonly url = this.#server.url.origin;

  async #answer(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const plural = pathname.split("/").at(-1) ?? "";
    if (request.method === "POST") {
      this.published.push(await request.json());
      return Response.json({}, { status: 201 });
    }
    if (pathname.endsWith("/configmaps/authorities")) return Response.json({}, { status: 404 });
    if (this.withheld.has(plural)) return Response.json({}, { status: 503 });
    if (searchParams.has("watch")) return new Response(new ReadableStream({ start: () => undefined }));
    const metadata = { namespace: "x", name: "p", uid: "u", resourceVersion: "1" };
    const policy = { metadata, spec: { podSelector: {}, policyTypes: ["Ingress"] } };
    return Response.json({ metadata: { resourceVersion: "1" }, items: plural === "networkpolicies" ? [policy] : [] });
  }

  [Symbol.dispose](): void {
    void this.#server.stop(true);
  }
}

describeWith("a controller", ["openssl"], () => {
  let scratch: ReturnType<typeof scratchDir>;
  let api: ApiServer;
  let logged: string[];
  const running: Controller[] = [];
  const at = (name: string): string => join(scratch.path, name);

  beforeEach(async () => {
    scratch = scratchDir();
    api = new ApiServer();
    logged = [];
    const certificates = new Certificates(scratch.path);
    await certificates.make("ca");
    await certificates.make("server", "ca", "127.0.0.1");
    mkdirSync(at("tls"));
    for (const [from, to] of [
      ["server.pem", "tls.crt"],
      ["server.key", "tls.key"],
      ["ca.pem", "ca.crt"],
    ] as const)
      copyFileSync(at(from), at(`tls/${to}`));
  });
  afterEach(async () => {
    for (const each of running.splice(0)) await each.stop();
    api[Symbol.dispose]();
    scratch[Symbol.dispose]();
  });

  async function start(more: { readonly dataDir?: string } = {}): Promise<Controller> {
    const credentials = { authorization: async () => undefined, renew: async () => false };
    const controller = await Controller.start(
      {
        cluster: { server: api.url, tls: async () => ({}), credentials },
        env: {},
        listen: { host: "127.0.0.1", port: 0 },
        certificates: { t: "given", directory: at("tls") },
        publishedIn: { namespace: "kube-system", configMaps: ["authorities"], apiServices: [] },
        ...more,
      },
      createLogger("info", (line) => logged.push(JSON.parse(line).message)),
      new AbortController().signal,
    );
    running.push(controller);
    return controller;
  }
  async function stop(controller: Controller): Promise<void> {
    running.splice(running.indexOf(controller), 1);
    await controller.stop();
  }
  const ca = (): string => readFileSync(at("ca.pem"), "utf8");
  const isReady = async ({ port }: Controller): Promise<boolean> =>
    (await fetch(`https://127.0.0.1:${port}/readyz`, { tls: { ca: ca() } })).ok;

  test("serves by the certificate that it has published, and policies once all are computed", async () => {
    api.withheld.add("namespaces");
    const controller = await start();
    expect(api.published).toEqual([
      expect.objectContaining({
        metadata: { namespace: "kube-system", name: "authorities" },
        data: { "ca.crt": ca() },
      }),
    ]);
    await eventually(() => logged.some((line) => line.includes("cannot be followed")), "the word of what is missing");
    expect(await isReady(controller)).toBe(false);
    api.withheld.clear();
    await eventually(() => logged.includes("the policies are computed"), "the computation");
    expect(await isReady(controller)).toBe(true);
  });

  test("serves what was known before until all is computed anew, where it keeps that", async () => {
    const dataDir = at("data");
    const first = await start({ dataDir });
    await eventually(() => logged.includes("the policies are computed"), "the computation");
    await stop(first);
    api.withheld.add("networkpolicies");
    const [kept, other] = [await start({ dataDir }), await start()];
    expect([await isReady(kept), await isReady(other)]).toEqual([true, false]);
    expect(logged.filter((line) => line.startsWith("serves what was known before"))).toHaveLength(1);
    logged.length = 0;
    api.withheld.clear();
    await eventually(() => logged.filter((line) => line === "the policies are computed").length === 2, "both");
    await eventually(async () => await isReady(other), "the other one");
  });
});
