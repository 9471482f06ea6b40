import type { CniResult } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { formatCidr } from "../../../shared/ip.ts";
import type { Logger } from "../../../shared/log.ts";
import {
  addAltName,
  createVeth,
  Errno,
  forgetNeighbour,
  getNamespaceId,
  isRefusal,
  type Kernel,
  type Link,
  type Message,
  type NetlinkSocket,
  type NetworkNamespace,
  readNamespaceId,
  setBridgePort,
  setLink,
} from "../../netlink/mod.ts";
import { findHostLink, linkGroup, linkOrNone, retire } from "./host-links.ts";
import { isOfNetwork, type Plan, resultOf } from "./plan.ts";
import { PodEnd } from "./pod-end.ts";
import type { Sweeper } from "./sweeper.ts";

export interface WiringTools {
  readonly kernel: Kernel;
  /** In the node's namespace. */
  readonly socket: NetlinkSocket;
  readonly sweeper: Sweeper;
  readonly logger: Logger;
}

/** Makes one attachment be as its plan says, whatever an earlier call left of it, and answers the result. */
export async function wire(
  tools: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  bridge: Link,
): Promise<CniResult> {
  const standing = await reusable(tools, plan, namespace);
  if (standing !== undefined) {
    completeHostEnd(tools, plan, standing, bridge);
    return configure(tools, plan, namespace, standing, bridge);
  }
  const made = await create(tools, plan, namespace, bridge);
  try {
    runAll(tools.socket, [
      setLink(made.name, made.index, { alias: plan.alias, group: linkGroup.standing }),
      addAltName(made.name, made.index, plan.altName),
      setBridgePort(made.name, made.index, { hairpin: plan.network.hairpin }),
    ]);
    return configure(tools, plan, namespace, made, bridge);
  } catch (caught) {
    await remove(tools, made).catch((error: unknown) => {
      tools.logger.error("cannot undo a failed attach", { interface: made.name, error: String(error) });
    });
    throw caught;
  }
}

/** What stands for this owner and can be kept. A pair into another namespace, or with an address that IPAM has given away since, is removed. */
async function reusable(tools: WiringTools, plan: Plan, namespace: NetworkNamespace): Promise<Link | undefined> {
  const link = findHostLink(tools.socket, plan.owner);
  if (link === undefined) return undefined;
  if (link.group === linkGroup.leaving) {
    await tools.sweeper.sweep();
    return undefined;
  }
  if (leadsInto(tools.socket, link, namespace) && !isStale(tools, plan, namespace, link)) return link;
  await remove(tools, link);
  return undefined;
}

/** Whether the other end of the pair lies in `namespace`. */
export function leadsInto(socket: NetlinkSocket, link: Link, namespace: NetworkNamespace): boolean {
  const id = socket.get(getNamespaceId(namespace.fd), readNamespaceId);
  return id !== undefined && id === link.peerNamespaceId;
}

function isStale({ kernel }: WiringTools, plan: Plan, namespace: NetworkNamespace, link: Link): boolean {
  using pod = new PodEnd(kernel, namespace);
  const peer = pod.link(plan.owner.ifname);
  if (peer === undefined || peer.index !== link.peerIndex) return true;
  const wanted = new Set(plan.ipam.ips.map((ip) => formatCidr(ip.address)));
  // Addresses of other blocks may come from plugins later in the chain.
  return pod
    .addresses(peer)
    .some(({ address }) => isOfNetwork(plan.network, address.ip) && !wanted.has(formatCidr(address)));
}

async function remove({ socket, sweeper }: WiringTools, link: Link): Promise<void> {
  retire(socket, link);
  await sweeper.sweep();
}

/**
 * Both ends, the host's still without a name tag: it is in the group of those that arrive, so that the next
 * start removes it if this process ends here.
 */
async function create(tools: WiringTools, plan: Plan, namespace: NetworkNamespace, bridge: Link): Promise<Link> {
  const pair = createVeth({
    host: { name: plan.hostIfname, mac: plan.hostMac, master: bridge.index, group: linkGroup.arriving },
    pod: { name: plan.owner.ifname, mac: plan.podMac, namespaceFd: namespace.fd },
    mtu: plan.mtu,
  });
  const taken = (): boolean => {
    const [refusal] = tools.socket.batch([pair]);
    if (refusal === undefined) return false;
    if (isRefusal(refusal, Errno.EEXIST)) return true;
    throw refusal;
  };
  // An interface that is leaving keeps its name until it is swept, on the node and in the sandbox.
  if (taken()) {
    await tools.sweeper.sweep();
    if (taken()) throw nameTaken(tools, plan, namespace);
  }
  const link = linkOrNone(tools.socket, { name: plan.hostIfname });
  if (link !== undefined) return link;
  throw new CniError(CniCode.interfaceFailure, `Cannot use "${plan.hostIfname}": somebody deleted it just now`);
}

function nameTaken({ socket, kernel }: WiringTools, plan: Plan, namespace: NetworkNamespace): CniError {
  const host = linkOrNone(socket, { name: plan.hostIfname });
  using pod = new PodEnd(kernel, namespace);
  const [place, name] = host === undefined ? ["sandbox", plan.owner.ifname] : ["node", plan.hostIfname];
  const holder = host ?? pod.link(name);
  const about = holder === undefined ? "" : `, of kind "${holder.kind ?? "hardware"}" with index ${holder.index}`;
  return new CniError(
    CniCode.interfaceFailure,
    `Cannot create the interface "${name}": the ${place} has one of that name that is not ours${about}, wanted the name free`,
  );
}

/** What a killed call, or somebody else, left wrong with the host's end. */
function completeHostEnd({ socket }: WiringTools, plan: Plan, link: Link, bridge: Link): void {
  const { alias, altName, network } = plan;
  const isRight = link.up && link.master === bridge.index && link.alias === alias && link.hairpin === network.hairpin;
  if (!isRight) {
    runAll(socket, [
      setLink(link.name, link.index, { alias, up: true, master: bridge.index }),
      setBridgePort(link.name, link.index, { hairpin: network.hairpin }),
    ]);
  }
  const named = linkOrNone(socket, { altName });
  if (named === undefined) socket.run(addAltName(link.name, link.index, altName));
}

function configure(
  { kernel, socket, logger }: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  host: Link,
  bridge: Link,
): CniResult {
  using pod = new PodEnd(kernel, namespace);
  const { ifname } = plan.owner;
  const before = pod.link(ifname);
  if (before === undefined) {
    throw new CniError(CniCode.interfaceFailure, `Cannot set up "${ifname}": somebody deleted it just now`);
  }
  pod.configure(before, plan);
  const after = pod.link(ifname) ?? before;
  forgetFormerHolders(socket, plan, bridge);
  startForwarding(socket, host);
  pod.announce(after, plan);
  const outside = plan.ipam.ips.filter((ip) => !isOfNetwork(plan.network, ip.address.ip));
  for (const { address } of outside) {
    logger.warn("a pod's address is outside its network's subnets, so that it cannot reach the gateway", {
      network: plan.network.name,
      address: formatCidr(address),
      sandbox: plan.owner.sandboxId,
    });
  }
  return resultOf(
    plan.ipam,
    { name: bridge.name, mac: bridge.mac },
    { name: host.name, mac: host.mac },
    { name: ifname, mac: after.mac, mtu: after.mtu, sandbox: namespace.path },
  );
}

/** The node may still know an address under the hardware address of the pod that had it before. */
function forgetFormerHolders(socket: NetlinkSocket, plan: Plan, bridge: Link): void {
  const messages = plan.ipam.ips.map(({ address }) => forgetNeighbour(bridge.name, bridge.index, address.ip));
  const refusal = socket.batch(messages).find((one) => one !== undefined && one.errno !== Errno.ENOENT);
  if (refusal !== undefined) throw refusal;
}

/** The announcement that follows would else be lost. */
function startForwarding(socket: NetlinkSocket, host: Link): void {
  const [refusal] = socket.batch([setBridgePort(host.name, host.index, { forwarding: true })]);
  // A bridge that speaks the spanning tree protocol (EBUSY) decides by itself.
  if (refusal !== undefined && refusal.errno !== Errno.EBUSY && refusal.errno !== Errno.ENETDOWN) throw refusal;
}

function runAll(socket: NetlinkSocket, messages: readonly Message[]): void {
  const refusal = socket.batch(messages).find((one) => one !== undefined);
  if (refusal !== undefined) throw refusal;
}
