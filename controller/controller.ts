import { type ClientTrust, ClusterAccess } from "../shared/access/mod.ts";
import { type CertificateSource, FollowedCertificates, GivenCertificates } from "../shared/certificates/mod.ts";
import { HttpsServer, type ServerTls } from "../shared/https/mod.ts";
import { ApiClient, type ClusterAccess as ClusterPlace, type TlsMaterial } from "../shared/kubernetes/mod.ts";
import type { Logger } from "../shared/log.ts";
import { Registry, readProcess } from "../shared/metrics/mod.ts";
import type { Cluster } from "../shared/policy/mod.ts";
import type { Running } from "../shared/server/daemon.ts";
import { ControlPlaneApi, type ServedState } from "./api/mod.ts";
import { KeptCertificates, type PublishedIn, publish } from "./certificates/mod.ts";
import { type ControllerMeter, controllerMetrics, measureController } from "./controller-metrics.ts";
import { FollowedObjects } from "./followed-objects.ts";
import { NodeKeeper } from "./nodes/mod.ts";
import type { PolicyComputation } from "./policy/mod.ts";
import { ClusterReports, type Replicas, StatusLease } from "./reports/mod.ts";
import { GivenAuthoritySource, KeptAuthoritySource, TunnelSigner } from "./signing/mod.ts";
import { type Page, type PageOptions, startPage } from "./team-page.ts";
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
  /** An address at which other controllers reach this one; absent: there are none. */
  readonly advertise?: string;
  /** Whether it watches what agents tell of their nodes. */
  readonly watchesNodes?: boolean;
  /** Whether it signs nodes' certificates for IPsec: whose account asks, and the directory of a given authority. */
  readonly signs?: { readonly account: string; readonly authority?: string };
  /** Where what is known is kept for the next start; absent: nowhere. */
  readonly dataDir?: string;
  /** Absent: the page for a team is not served. */
  readonly page?: PageOptions;
}

/** `pipette controller`: computes the cluster's network policies, and serves each node its part. */
export class Controller implements Running {
  /** Never: what goes wrong later is retried. */
  readonly lost = new Promise<string>(() => undefined);
  readonly settled = undefined;
  readonly port: number;
  readonly #resources: AsyncDisposableStack;

  /** Serves once there is a certificate; policies once they are computed. @throws what the signal was aborted with */
  static async start(options: ControllerOptions, logger: Logger, signal: AbortSignal): Promise<Controller> {
    const { cluster, env, publishedIn, listen, dataDir, advertise } = options;
    await using starting = new AsyncDisposableStack();
    const client = starting.use(new ApiClient(cluster, { env }));
    const { namespace } = publishedIn;
    const following = { logger, signal, publish: (ca: string) => publish(client, publishedIn, ca) };
    const certificates = starting.use(await FollowedCertificates.start(sourceOf(options, client), following));
    const lease = advertise === undefined ? undefined : starting.use(new StatusLease({ client, namespace, logger }));
    const isHolder = (): boolean => lease === undefined || lease.holder.t === "this one";
    if (options.watchesNodes) starting.use(new NodeKeeper({ client, namespace, logger, isHolder }));
    const replicas = lease && replicasOf(options, lease, () => certificates.serving.ca, logger);
    const now: { state?: ServedState | undefined; server?: HttpsServer; page?: Page; kept?: KeptInputs } = {};
    let isComplete = false;
    const registry = new Registry(controllerMetrics);
    registry.read(readProcess);
    const signer = options.signs && starting.use(signerOf(options.signs, namespace, { client, logger, registry }));
    registry.read((samples) => measureController({ state: now.state, signer }, samples));
    if (dataDir !== undefined) now.state = await earlierState(dataDir, logger, replicas);
    const tls = (): ServerTls => ({ ...certificates.serving, clientCas: clientCasOf(objects.trust) });
    const replaceTls = (): void => {
      now.server?.replaceTls(tls());
      now.page?.replaceTls();
    };
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
      now.state = servedState(computation, objects.cluster, { replicas, meter: registry });
      isComplete = true;
      // Who followed what was known before starts over, and replaces all of it.
      stale?.watches.end();
      void stale?.reports[Symbol.asyncDispose]();
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
    starting.defer(async () => {
      now.state?.watches.end();
      await now.state?.reports[Symbol.asyncDispose]();
    });
    const { port } = now.server;
    if (options.page !== undefined)
      now.page = starting.use(await startPage(options.page, { cluster, env, logger, namespace, certificates }));
    if (lease !== undefined && advertise !== undefined) {
      lease.onChanged = () => now.state?.reports.holderChanged();
      // Before that it would keep nothing: all that is known is of another process.
      const stand = (): void => lease.stand(hostAndPort(advertise, port));
      void objects.complete.then(stand, () => undefined);
    }
    certificates.onReplaced = replaceTls;
    logger.info("ready", { listen: hostAndPort(listen.host, port) });
    return new Controller(port, starting.move());
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

const hostAndPort = (host: string, port: number): string => `${host.includes(":") ? `[${host}]` : host}:${port}`;

interface StateOptions {
  /** It is of what an earlier process knew. */
  readonly isStale?: boolean;
  readonly replicas?: Replicas | undefined;
  readonly meter?: ControllerMeter | undefined;
}

/** Of a computation that is complete. */
export function servedState(
  computation: PolicyComputation,
  cluster: Cluster,
  { isStale = false, replicas, meter }: StateOptions = {},
): ServedState {
  const reports = new ClusterReports(replicas);
  const took = (ms: number): void => meter?.observe("pipette_controller_sync_duration_seconds", {}, ms / 1000);
  const watches = new Watches(computation, { isStale, took, published: (changes) => reports.follow(changes) });
  watches.publish();
  return { computation, watches, reports, cluster };
}

async function earlierState(
  dataDir: string,
  logger: Logger,
  replicas: Replicas | undefined,
): Promise<ServedState | undefined> {
  const earlier = await earlierComputation(dataDir, logger);
  if (earlier === undefined) return undefined;
  logger.info("serves what was known before, until the policies are computed anew", earlier.computation.size);
  return servedState(earlier.computation, earlier.cluster, { isStale: true, replicas });
}

/** Controllers know each other by the certificate that all of them show, and by their account. */
function replicasOf(
  { cluster, publishedIn }: ControllerOptions,
  lease: StatusLease,
  ca: () => string,
  logger: Logger,
): Replicas {
  const serverName = `pipette-controller.${publishedIn.namespace}.svc`;
  const tls = async (): Promise<TlsMaterial> => {
    const { cert, key } = await cluster.tls();
    const own = { ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
    return { ca: ca(), serverName, ...own };
  };
  const { credentials } = cluster;
  return {
    logger,
    get holder() {
      return lease.holder;
    },
    connect: (address) => new ApiClient({ server: `https://${address}`, tls, credentials }),
  };
}

function signerOf(
  { account, authority }: NonNullable<ControllerOptions["signs"]>,
  namespace: string,
  { client, logger, registry }: { client: ApiClient; logger: Logger; registry: ControllerMeter },
): TunnelSigner {
  return new TunnelSigner({
    ...{ client, logger, agents: { namespace, account } },
    authority:
      authority === undefined ? new KeptAuthoritySource(client, namespace) : new GivenAuthoritySource(authority),
    answered: (result) => registry.add("pipette_controller_certificate_requests_total", { result }),
  });
}

function sourceOf({ certificates, publishedIn }: ControllerOptions, client: ApiClient): CertificateSource {
  if (certificates.t === "given") return new GivenCertificates(certificates.directory);
  const { secret: name, names } = certificates;
  return new KeptCertificates(client, { namespace: publishedIn.namespace, name }, names);
}
