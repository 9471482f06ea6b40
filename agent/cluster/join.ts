import { retry } from "../../shared/async/backoff.ts";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import { withTimeout } from "../../shared/async/with-timeout.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { contains, formatCidr, formatIp, type Ip, overlap } from "../../shared/net/ip.ts";
import { touchesNobodys } from "../../shared/net/node-address.ts";
import type { AgentConfig, NodesConfig, RegistryConfig } from "../config/agent-config.ts";
import { isPodSubnet } from "../config/values.ts";
import { contradiction, Membership, type MembershipOptions, type RegistrationState, saysNo } from "./membership.ts";
import type { ClusterNode, NodeRegistry, Registration } from "./node-registry.ts";
import { ownEncryption } from "./own-key.ts";
import { RegistryCache } from "./registry-cache.ts";
import { registryRetry } from "./registry-health.ts";
import { configuredAddresses, findOwnAddresses, nodeUid, type OwnAddresses } from "./this-node.ts";

/**
 * How long an answer of the registry may take. After that a node with a cached subnet continues with it; others report
 * that they wait.
 */
const patienceMs = 2000;
/** How long it then waits for the node's own addresses, because the agent may start before the network. */
const linksPatienceMs = 15_000;

export interface JoinOptions {
  readonly config: AgentConfig;
  readonly nodes: NodesConfig;
  readonly registry: NodeRegistry;
  /** Whether pods of this node hold addresses, or, with `outside`, addresses outside of these subnets. */
  podsStand(outside?: ClusterNode["subnets"]): boolean;
  /** The subnets of these addresses: of each family the one with the most of them. */
  podSubnets(): ClusterNode["subnets"];
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Called with the reason why the node has not joined yet. */
  waiting(reason: string): void;
}

export interface Joined {
  readonly membership: Membership;
  /** The configuration with the node's subnets. */
  readonly config: AgentConfig;
}

/**
 * Registers this node, or, if the registry does not answer, uses the cached record; without either it waits. Running
 * pods with addresses of another subnet, as after a change of the registry, keep that subnet until they have gone,
 * because they need it to run and to be removed.
 * @throws {CniError} code 5 where the data directory cannot be used; what the signal was aborted with
 */
export async function joinCluster(options: JoinOptions): Promise<Joined> {
  const { config, nodes, registry, logger, signal } = options;
  const uid = nodeUid(config.dataDir);
  const known = new RegistryCache(config.dataDir, identityOf(nodes.registry), logger);
  const linksUntilMs = performance.now() + linksPatienceMs;
  // HNS finds the node's adapter itself, and needs only its MAC here.
  const needsLinks = config.dataPath !== "hns" || nodes.mac === undefined;
  const linksMayMiss = (): boolean => !needsLinks || performance.now() > linksUntilMs;
  const ownRecord = (): Promise<Registration> => registrationOf(options, uid, linksMayMiss());
  const register = async (): Promise<ClusterNode> => {
    const own = await ownRecord();
    // A new subnet would cut running pods off from the other nodes.
    const claims = known.state.self === undefined || !options.podsStand();
    return registry.register(own, claims, options.podSubnets());
  };
  const membership = async (self: ClusterNode, state: RegistrationState): Promise<Joined> => {
    const isOwn = state.t === "registered" || state.t === "known";
    const changed = withSubnets(isOwn ? config : withoutSubnets(config), self);
    // The addresses in the registry's answer count, because some registries decide them.
    const own = await ownAddresses(self.addresses, linksMayMiss());
    if (needsLinks && own.linkAddresses.length === 0)
      logger.warn("no interface has the address by which the other nodes know this one", {
        addresses: self.addresses.map(formatIp),
      });
    // From here on nothing may fail or wait, since nobody would end the membership.
    signal.throwIfAborted();
    const rest: MembershipOptions = { ...options, config: changed, self, own, known, register };
    return { config: changed, membership: new Membership(rest, state) };
  };
  const keepPods = async (answer: ClusterNode | CniError, before?: ClusterNode): Promise<Joined> => {
    const subnets = options.podSubnets();
    if (answer instanceof CniError)
      return membership({ ...(await ownRecord()), subnets }, { t: "unconfirmed", is: answer.message });
    const self = before ?? { ...answer, subnets };
    return membership(self, { t: "refused", is: contradiction(self, answer, registry.name) ?? otherSubnets(answer) });
  };
  const attempt = async (): Promise<Joined> => {
    const { refused } = known.state;
    const self = stillOurs(known.state.self, options);
    // A released node claims no other subnet while its pods run, and is no member once they have gone.
    if (self !== undefined && refused !== undefined && options.podsStand())
      return membership(self, { t: "refused", is: refused });
    const before = refused === undefined ? self : undefined;
    const answer = await ask(register, ({ message }) => {
      const goesOn = before !== undefined || options.podsStand();
      if (!goesOn) options.waiting(message);
      return goesOn;
    });
    if (answer instanceof CniError) {
      if (before === undefined && options.podsStand()) return keepPods(answer);
      if (before === undefined) throw answer;
      if (!saysNo(answer)) {
        const joined = await membership(before, { t: "known" });
        logger.warn("starting with what was last known of the other nodes", { error: answer.message });
        return joined;
      }
      if (!options.podsStand()) throw answer;
      return membership(before, { t: "refused", is: answer.message });
    }
    // Running pods keep their addresses, whatever the registry says now.
    return options.podsStand(answer.subnets) ? keepPods(answer, before) : membership(answer, { t: "registered" });
  };
  const problem = new LogOnChange(logger);
  const failed = (caught: unknown): void => {
    const { message, code, details } = CniError.from(caught, "join");
    options.waiting(message);
    problem.log("waiting to join", message, { code, details });
  };
  return retry(attempt, { ...registryRetry, signal, failed });
}

/** Nothing if pods have other addresses, because the registry or the configuration was another one meanwhile. */
const stillOurs = (self: ClusterNode | undefined, { podsStand }: JoinOptions): ClusterNode | undefined =>
  self === undefined || podsStand(self.subnets) ? undefined : self;

/** The node's registration. @throws {CniError} as `ownAddresses` */
async function registrationOf(
  { config, nodes }: JoinOptions,
  uid: string,
  linksMayMiss: boolean,
): Promise<Registration> {
  // Without its interface the record would lose its MAC.
  const { addresses, mac: found } = await ownAddresses(configuredAddresses(config), linksMayMiss);
  const mac = nodes.mac ?? found;
  const encryption = ownEncryption(config);
  return {
    name: nodes.name,
    uid,
    addresses,
    ...(mac === undefined ? {} : { mac }),
    ...(encryption === undefined ? {} : { encryption }),
  };
}

/** Identifies a registry for the cache. Endpoints are left out, because etcd's members change. */
function identityOf(registry: RegistryConfig): string {
  switch (registry.type) {
    case "static":
      return `static ${registry.file}`;
    case "etcd":
      return `etcd ${registry.prefix}`;
    case "kubernetes":
      return "kubernetes";
  }
}

/**
 * Answers the failure, if it fails.
 * @param late called when the answer takes long; answers whether to continue without it
 */
async function ask(
  register: () => Promise<ClusterNode>,
  late: (error: CniError) => boolean,
): Promise<ClusterNode | CniError> {
  const answer = register().catch((caught: unknown) => CniError.from(caught, "join"));
  const is = `the registry has given no answer for ${patienceMs} ms`;
  const error = new CniError(CniCode.tryAgainLater, `Cannot join: ${is}`);
  return await withTimeout(answer, patienceMs, () => (late(error) ? error : answer));
}

/**
 * As `findOwnAddresses`, for a node that may be early in its boot.
 * @throws {CniError} 11 also where no interface has one of the addresses, unless that is `accepted`
 */
async function ownAddresses(wanted: readonly Ip[], accepted: boolean): Promise<OwnAddresses> {
  const found = await findOwnAddresses(wanted);
  if (found.linkAddresses.length > 0 || accepted) return found;
  const is = `no interface has ${wanted.map(formatIp).join(", ")} yet`;
  throw new CniError(CniCode.tryAgainLater, `Cannot join: ${is}, wanted this node's own address`);
}

const otherSubnets = ({ subnets }: ClusterNode): string =>
  `pods of this node have addresses outside of ${subnets.map(formatCidr).join(", ")}, which the registry gives it`;

/** The configuration without the first network's subnets, because running pods' subnet takes precedence. */
export function withoutSubnets(config: AgentConfig): AgentConfig {
  const [first, ...others] = config.networks;
  return first === undefined ? config : { ...config, networks: [{ ...first, subnets: [] }, ...others] };
}

/**
 * The configuration with the node's subnets on its first network.
 * @throws {CniError} code 7 where the two contradict each other
 */
export function withSubnets(config: AgentConfig, self: ClusterNode): AgentConfig {
  const [first, ...others] = config.networks;
  if (first === undefined) return config;
  const text = self.subnets.map(formatCidr).join(", ");
  const refuse = (is: string, wanted?: string): never => {
    throw new CniError(
      CniCode.invalidConfig,
      `Cannot join: the registry gives this node ${text === "" ? "no subnet" : `"${text}"`}, ${is}${wanted === undefined ? "" : `, wanted ${wanted}`}`,
    );
  };
  const families = new Set(self.subnets.map(({ ip }) => ip.family));
  const areForPods = self.subnets.every((subnet) => isPodSubnet(subnet) && !touchesNobodys(subnet));
  if (self.subnets.length === 0 || families.size < self.subnets.length || !areForPods)
    refuse("which are no subnets for pods", "one block, or one of each family, without host bits");
  const said = first.subnets.map(formatCidr).join(", ");
  if (said !== "" && said !== text) refuse(`and the configuration says "${said}"`, "the same, or none there");
  const within = self.addresses.find((ip) => self.subnets.some((subnet) => contains(subnet, ip)));
  if (within !== undefined) refuse(`with the node's own address "${formatIp(within)}" in it`);
  const other = others.find(({ subnets }) => subnets.some((a) => self.subnets.some((b) => overlap(a, b))));
  if (other !== undefined) refuse(`a part of network "${other.name}" or around it`);
  if (config.dataPath === "hns" && (families.has(6) || self.subnets.length !== 1))
    refuse('and "dataPath" is "hns"', "one of IPv4");
  if (families.has(6) && (first.mtu ?? 1500) < 1280) refuse(`and an MTU of ${first.mtu}`, "at least 1280 for IPv6");
  return { ...config, networks: [{ ...first, subnets: self.subnets }, ...others] };
}
