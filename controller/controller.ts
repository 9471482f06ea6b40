import { type ClientTrust, ClusterAccess } from "../shared/access/mod.ts";
import { type CertificateSource, FollowedCertificates, GivenCertificates } from "../shared/certificates/mod.ts";
import { HttpsServer, type ServerTls } from "../shared/https/mod.ts";
import { ApiClient, type ClusterAccess as ClusterPlace } from "../shared/kubernetes/mod.ts";
import type { Logger } from "../shared/log.ts";
import { Registry, readProcess } from "../shared/metrics/mod.ts";
import type { Cluster } from "../shared/policy/mod.ts";
import type { Running } from "../shared/server/daemon.ts";
import { ControlPlaneApi, PolicyReports, type ServedState } from "./api/mod.ts";
import { KeptCertificates, type PublishedIn, publish } from "./certificates/mod.ts";
import { type ControllerMeter, controllerMetrics, measureController } from "./controller-metrics.ts";
import { FollowedObjects } from "./followed-objects.ts";
import type { PolicyComputation } from "./policy/mod.ts";
import { earlierComputation, KeptInputs } from "./warm-start.ts";
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
  /** Where what is known is kept for the next start; absent: nowhere. */
  readonly dataDir?: string;
}

/** `pipette controller`: computes the cluster's network policies, and serves each node its part. */
export class Controller implements Running {
  /** Never: what goes wrong later is retried. */
  readonly lost = new Promise<string>(() => undefined);
  readonly port: number;
  readonly #resources: AsyncDisposableStack;

  /** Serves once there is a certificate; policies once they are computed. @throws what the signal was aborted with */
  static async start(options: ControllerOptions, logger: Logger, signal: AbortSignal): Promise<Controller> {
    const { cluster, env, publishedIn, listen, dataDir } = options;
    await using starting = new AsyncDisposableStack();
    const client = starting.use(new ApiClient(cluster, { env }));
    const publishCa = (ca: string): Promise<void> => publish(client, publishedIn, ca);
    const certificates = starting.use(
      await FollowedCertificates.start(sourceOf(options, client), { logger, signal, publish: publishCa }),
    );
    const now: { state?: ServedState | undefined; server?: HttpsServer; kept?: KeptInputs } = {};
    let isComplete = false;
    const registry = new Registry(controllerMetrics);
    registry.read(readProcess);
    registry.read((samples) => measureController(now.state, samples));
    if (dataDir !== undefined) now.state = await earlierState(dataDir, logger);
    const tls = (): ServerTls => ({ ...certificates.serving, clientCas: clientCasOf(objects.trust) });
    const replaceTls = (): void => now.server?.replaceTls(tls());
    const objects = starting.use(
      new FollowedObjects(client, logger, {
        trustChanged: replaceTls,
        changed: () => {
          if (isComplete) now.state?.watches.changed();
          now.kept?.changed();
        },
      }),
    );
    const { computation } = objects;
    const complete = (): void => {
      const stale = now.state;
      now.state = servedState(computation, objects.cluster, { meter: registry });
      isComplete = true;
      // Who followed what was known before starts over, and replaces all of it.
      stale?.watches.end();
      logger.info("the policies are computed", computation.size);
      if (dataDir !== undefined) now.kept = new KeptInputs(dataDir, () => objects.inputs, logger);
    };
    void objects.complete.then(complete, () => undefined);
    starting.defer(() => now.kept?.[Symbol.asyncDispose]());
    const access = new ClusterAccess({
      client,
      logger,
      trust: () => objects.trust,
      pod: (key) => computation.pod(key),
    });
    const api = new ControlPlaneApi({ logger, access, state: () => now.state, metrics: () => registry.text() });
    now.server = starting.use(await HttpsServer.listen(listen, tls(), (exchange) => void api.serve(exchange)));
    starting.defer(() => now.state?.watches.end());
    certificates.onReplaced = replaceTls;
    logger.info("ready", { listen: `${listen.host}:${now.server.port}` });
    return new Controller(now.server.port, starting.move());
  }

  private constructor(port: number, resources: AsyncDisposableStack) {
    this.port = port;
    this.#resources = resources;
  }

  async stop(): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

const clientCasOf = ({ clientCa, proxyCa }: ClientTrust): string[] => [clientCa, proxyCa].filter((pem) => pem !== "");

/** Of a computation that is complete. @param isStale it is of what an earlier process knew */
export function servedState(
  computation: PolicyComputation,
  cluster: Cluster,
  { isStale = false, meter }: { readonly isStale?: boolean; readonly meter?: ControllerMeter } = {},
): ServedState {
  const reports = new PolicyReports();
  const took = (ms: number): void => meter?.observe("pipette_controller_sync_duration_seconds", {}, ms / 1000);
  const watches = new Watches(computation, { isStale, took, published: (changes) => reports.follow(changes) });
  watches.publish();
  return { computation, watches, reports, cluster };
}

async function earlierState(dataDir: string, logger: Logger): Promise<ServedState | undefined> {
  const earlier = await earlierComputation(dataDir, logger);
  if (earlier === undefined) return undefined;
  logger.info("serves what was known before, until the policies are computed anew", earlier.computation.size);
  return servedState(earlier.computation, earlier.cluster, { isStale: true });
}

function sourceOf({ certificates, publishedIn }: ControllerOptions, client: ApiClient): CertificateSource {
  if (certificates.t === "given") return new GivenCertificates(certificates.directory);
  const { secret: name, names } = certificates;
  return new KeptCertificates(client, { namespace: publishedIn.namespace, name }, names);
}
