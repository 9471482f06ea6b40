import { CniCode, CniError } from "../shared/errors.ts";
import type { KubernetesEvents } from "../shared/kubernetes/mod.ts";
import { isWindows } from "../shared/os/platform.ts";
import type { Cluster } from "./cluster/cluster.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import { nameOf } from "./config/nodes-config.ts";
import type { DataPath } from "./datapath/datapath.ts";
import { timed } from "./metrics/meter.ts";
import type { NodePolicies } from "./policies/mod.ts";
import type { PeerProbes } from "./reachability/mod.ts";
import type { AgentContext } from "./reconcile/mod.ts";
import type { NodeServices } from "./services/mod.ts";

/** What an agent has of its cluster where its configuration says so: events, network policies, services. */

type Events = KubernetesEvents | undefined;
type Around = Pick<AgentContext, "logger" | "meter">;

/** What tells Kubernetes of nodes, pods, policies and services; nothing where there is none. @throws {CniError} 7 */
export async function openEvents({ policies, services, nodes, ovs }: AgentConfig, { logger }: Around): Promise<Events> {
  const hasNews = policies !== undefined || (ovs !== undefined && ovs.encryption !== "none");
  const isOfPod = hasNews && process.env["KUBERNETES_SERVICE_HOST"] !== undefined;
  const account = services?.from === "cluster" ? services : isOfPod ? {} : undefined;
  if (account === undefined) return undefined;
  const { ApiClient, KubernetesEvents, serviceAccountAccess } = await import("../shared/kubernetes/mod.ts");
  const { env } = process;
  const access = serviceAccountAccess(account, env, "services.server");
  const connect = () => new ApiClient(access, { env });
  return new KubernetesEvents({ node: nodes?.name ?? nameOf({}), connect, logger });
}

/** Where there are to be policies: the same data path, with its pods closed until theirs are in force. @throws {CniError} 7 */
export async function openPolicies(
  dataPath: DataPath,
  config: AgentConfig,
  events: Events,
  { logger, meter }: Around,
): Promise<{ readonly policies: NodePolicies; readonly dataPath: DataPath } | undefined> {
  if (config.policies === undefined) return undefined;
  const { policies: enforcement } = dataPath;
  if (enforcement === undefined)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot enforce network policies: the data path "${config.dataPath}" does not, wanted no section "policies"`,
    );
  // Loaded where it is needed: it holds the client of an API server.
  const { controllerAccess, NodePolicies, policed } = await import("./policies/mod.ts");
  const policies = new NodePolicies({
    ...{ node: config.nodes?.name ?? nameOf({}), logger, meter },
    enforcement: timed(enforcement, { enforce: "policies" }, meter),
    ...(events === undefined ? {} : { events }),
    dataDir: config.dataDir,
    waitMs: config.policies.waitMs,
    log: config.policies.log,
    connect: controllerAccess(config.policies, process.env),
  });
  return { policies, dataPath: policed(dataPath, policies) };
}

/** What asks whether other nodes' pods are reached; nothing where there are none, or nobody wants it. Linux alone can. */
export async function openProbes(
  cluster: Pick<Cluster, "peers" | "self"> | undefined,
  { podMtu }: DataPath,
  { nodes, dataPath, ovs }: AgentConfig,
  { logger, meter }: Around,
): Promise<PeerProbes | undefined> {
  const { probeIntervalMs: intervalMs = 0 } = nodes ?? {};
  // There pods have addresses of somebody else, and no gateway of ours.
  const hasGateway = dataPath !== "ovs" || ovs?.mode !== "networkPolicyOnly";
  if (cluster === undefined || intervalMs === 0 || isWindows || !hasGateway) return undefined;
  const { Echo } = await import("./protocols/icmp/mod.ts");
  const { PeerProbes } = await import("./reachability/mod.ts");
  const echo = new Echo();
  return new PeerProbes({
    ...{ peers: cluster.peers, subnets: cluster.self.subnets, intervalMs, podMtu, logger, meter },
    ask: (question, signal) => echo.ask(question, signal),
  });
}

/** The services that are to be balanced, if any. @throws {CniError} 7 */
export async function openServices(
  { services: proxy }: DataPath,
  config: AgentConfig,
  events: Events,
  { logger, meter }: Around,
): Promise<NodeServices | undefined> {
  const { services } = config;
  if (services === undefined) return undefined;
  if (proxy === undefined)
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot balance services: the data path "${config.dataPath}" does not, wanted no section "services"`,
    );
  // Loaded where it is needed: it holds the client of an API server.
  const { openServices: open } = await import("./services/mod.ts");
  return open({ ...config, services }, timed(proxy, { apply: "services" }, meter), logger, { events, meter });
}
