import { readFileSync } from "node:fs";
import { type Access, ControlPlaneApi, type ServedState } from "../../controller/api/mod.ts";
import { servedState } from "../../controller/controller.ts";
import { controllerMetrics, measureController } from "../../controller/controller-metrics.ts";
import { PolicyComputation } from "../../controller/policy/mod.ts";
import { Refusal, type User } from "../../shared/access/mod.ts";
import { HttpsServer } from "../../shared/https/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { Registry, readProcess } from "../../shared/metrics/mod.ts";
import type { NetworkPolicy } from "../../shared/policy/mod.ts";
import { Certificates } from "../support/certificates.ts";
import { scratchDir } from "../support/scratch-dir.ts";

/** Tokens say who they are: `node-n1` is the agent's of node "n1", `admin` an operator's, others nobody's. */
const accessByToken: Access = {
  async userOf(asker) {
    const token = /^Bearer (admin|node-\S+)$/.exec(asker.header("authorization") ?? "")?.[1];
    if (token === undefined) throw new Refusal(401, "nobody");
    return { name: token, uid: "", groups: [], extra: {} };
  },
  isAllowed: async ({ name }, wish) => name === "admin" || wish.t !== "path",
  reachOf: ({ name }: User) =>
    name === "admin" ? { t: "all nodes" } : { t: "node", node: name.slice("node-".length) },
};

/**
 * For tests: the API of the controller over a computation that the test tells what there is, in this process, without an
 * API server. `computation.putPod(…)` and its like, then `changed()`.
 */
export class ServedPolicies implements AsyncDisposable {
  readonly computation = new PolicyComputation();
  /** Absent: not computed yet. */
  state: ServedState | undefined;
  readonly #certificates: Certificates;
  readonly #resources: AsyncDisposableStack;
  readonly #server: HttpsServer;

  /** @param policies what questions are answered by; besides that they are put into the computation like the others */
  static async start(policies: readonly NetworkPolicy[] = []): Promise<ServedPolicies> {
    await using starting = new AsyncDisposableStack();
    const certificates = new Certificates(starting.use(scratchDir()).path);
    await certificates.make("ca");
    await certificates.make("server", "ca", "127.0.0.1", "pipette-controller.kube-system.svc");
    const [cert, key] = [certificates.file("server.pem"), certificates.file("server.key")].map((file) =>
      readFileSync(file, "utf8"),
    );
    const tls = { cert: cert ?? "", key: key ?? "", clientCas: [] };
    const served: { api?: ControlPlaneApi } = {};
    const server = starting.use(
      await HttpsServer.listen({ host: "127.0.0.1", port: 0 }, tls, (exchange) => void served.api?.serve(exchange)),
    );
    const made = new ServedPolicies(certificates, server, starting.move());
    const metrics = new Registry(controllerMetrics, { freshMs: 0 });
    made.state = servedState(
      made.computation,
      { namespaceLabels: () => undefined, policiesIn: () => policies },
      { meter: metrics },
    );
    metrics.read(readProcess);
    metrics.read((samples) => measureController({ state: made.state }, samples));
    served.api = new ControlPlaneApi({
      logger: createLogger("warn", (line) => console.error(line)),
      access: accessByToken,
      state: () => made.state,
      metrics: () => metrics.text(),
    });
    return made;
  }

  private constructor(certificates: Certificates, server: HttpsServer, resources: AsyncDisposableStack) {
    this.#certificates = certificates;
    this.#server = server;
    this.#resources = resources;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#server.port}`;
  }

  get port(): number {
    return this.#server.port;
  }

  /** In PEM. */
  get ca(): string {
    return readFileSync(this.#certificates.file("ca.pem"), "utf8");
  }

  get caFile(): string {
    return this.#certificates.file("ca.pem");
  }

  changed(): void {
    this.state?.watches.changed();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.state?.watches.end();
    await this.#resources.disposeAsync();
  }
}
