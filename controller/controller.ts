import { ApiClient, type ClusterAccess as ClusterPlace } from "../shared/kubernetes/mod.ts";
import type { Logger } from "../shared/log.ts";
import type { Cluster } from "../shared/policy/mod.ts";
import type { Running } from "../shared/server/daemon.ts";
import { ClusterAccess } from "./access/mod.ts";
import { ControlPlaneApi, HttpsServer, PolicyReports, type ServedState, type ServerTls } from "./api/mod.ts";
import {
  type CertificateSource,
  FollowedCertificates,
  GivenCertificates,
  KeptCertificates,
  type PublishedIn,
  publish,
} from "./certificates/mod.ts";
import { FollowedObjects } from "./followed-objects.ts";
import type { PolicyComputation } from "./policy/mod.ts";
import { Watches } from "./watches/mod.ts";

export interface ControllerOptions {
  readonly cluster: ClusterPlace;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly listen: { readonly host: string; readonly port: number };
  /** Where the server's certificate comes from: a directory, or a Secret for which it is made. */
  readonly certificates:
    | { readonly t: "given"; readonly directory: string }
    | { readonly t: "kept"; readonly secret: string; readonly names: readonly string[] };
  readonly publishedIn: PublishedIn;
}

/** `pipette controller`: computes the cluster's network policies, and serves each node its part. */
export class Controller implements Running {
  /** Never: what goes wrong later is retried. */
  readonly lost = new Promise<string>(() => undefined);
  readonly port: number;
  readonly #resources: AsyncDisposableStack;

  /** Serves once there is a certificate; policies once they are computed. @throws what the signal was aborted with */
  static async start(options: ControllerOptions, logger: Logger, signal: AbortSignal): Promise<Controller> {
    await using starting = new AsyncDisposableStack();
    const client = starting.use(new ApiClient(options.cluster, { env: options.env }));
    const certificates = starting.use(
      await FollowedCertificates.start(sourceOf(options, client), {
        logger,
        signal,
        publish: (ca) => publish(client, options.publishedIn, ca),
      }),
    );
    const now: { state?: ServedState; server?: HttpsServer } = {};
    const tls = (): ServerTls => {
      const { cert, key } = certificates.serving;
      const { clientCa, proxyCa } = objects.trust;
      return { cert, key, clientCas: [clientCa, proxyCa].filter((pem) => pem !== "") };
    };
    const replaceTls = (): void => now.server?.replaceTls(tls());
    const objects = starting.use(new FollowedObjects(client, logger, () => now.state?.watches.changed(), replaceTls));
    const { computation } = objects;
    const access = new ClusterAccess({
      client,
      logger,
      trust: () => objects.trust,
      pod: (key) => computation.pod(key),
    });
    const api = new ControlPlaneApi({ logger, access, state: () => now.state });
    const server = starting.use(
      await HttpsServer.listen(options.listen, tls(), (exchange) => void api.serve(exchange)),
    );
    now.server = server;
    certificates.onReplaced = replaceTls;
    void objects.complete.then(
      () => {
        now.state = servedState(computation, objects.cluster);
        logger.info("the policies are computed", computation.size);
      },
      () => undefined,
    );
    starting.defer(() => now.state?.watches.end());
    logger.info("ready", { listen: `${options.listen.host}:${server.port}` });
    return new Controller(server.port, starting.move());
  }

  private constructor(port: number, resources: AsyncDisposableStack) {
    this.port = port;
    this.#resources = resources;
  }

  async stop(): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

/** Of a computation that is complete. */
export function servedState(computation: PolicyComputation, cluster: Cluster): ServedState {
  const reports = new PolicyReports();
  const watches = new Watches(computation, { published: (changes) => reports.follow(changes) });
  watches.publish();
  return { computation, watches, reports, cluster };
}

function sourceOf({ certificates, publishedIn }: ControllerOptions, client: ApiClient): CertificateSource {
  if (certificates.t === "given") return new GivenCertificates(certificates.directory);
  const { secret: name, names } = certificates;
  return new KeptCertificates(client, { namespace: publishedIn.namespace, name }, names);
}
