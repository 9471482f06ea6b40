import type { CniResult } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { formatCidr } from "../../../shared/net/ip.ts";
import { formatMac, parseMac } from "../../../shared/net/mac.ts";
import { reasonOf } from "../../../shared/reason.ts";
import {
  addAltName,
  createVeth,
  Errno,
  forgetNeighbour,
  getNamespaceId,
  isErrno,
  type Kernel,
  type Link,
  type Message,
  type NetlinkSocket,
  type NetworkNamespace,
  readNamespaceId,
  setIpv4Options,
  setLink,
} from "../../protocols/netlink/mod.ts";
import { findHostLink, findLink, findNamed, linkGroup, type Sweeper, takeOutOfService } from "./host-links.ts";
import type { HostPort } from "./host-port.ts";
import { isolateHostEnd } from "./node-sysctls.ts";
import { isOfNetwork, type Plan, resultOf } from "./plan.ts";
import { PodEnd } from "./pod-end.ts";

export interface WiringTools {
  readonly kernel: Kernel;
  /** In the node's namespace. */
  readonly socket: NetlinkSocket;
  readonly sweeper: Sweeper;
  readonly logger: Logger;
}

/** Makes one attachment as planned, whatever an earlier call left of it, and answers the result. */
export async function wire(
  tools: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  side: HostPort,
): Promise<CniResult> {
  const named = await reusable(tools, plan, namespace, side, findNamed(tools.socket, plan.owner));
  if (named !== undefined) return complete(tools, plan, namespace, named, side);
  let made = await create(tools, plan, namespace, side);
  if (made === undefined) {
    // An interface of somebody else, or ours without its second name.
    const unnamed = await reusable(tools, plan, namespace, side, findHostLink(tools.socket, plan.owner));
    if (unnamed !== undefined) return complete(tools, plan, namespace, unnamed, side);
    made = await create(tools, plan, namespace, side);
  }
  if (made === undefined) throw nameTaken(tools, plan, namespace);
  return finish(tools, plan, namespace, made, side);
}

/** Names the new pair and sets up both ends; on failure the pair is deleted again. */
async function finish(
  tools: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  made: Link,
  side: HostPort,
): Promise<CniResult> {
  try {
    isolateHostEnd(made.name);
    runAll(tools.socket, [
      // Before the group is set, so that every member of the group has these settings.
      setIpv4Options(made.name, made.index, {
        acceptRedirects: false,
        ...(side.group === linkGroup.onSwitch ? { hearsNobody: true } : {}),
      }),
      setLink(made.name, made.index, { alias: plan.alias, group: side.group }),
      addAltName(made.name, made.index, plan.altName),
    ]);
    return await configure(tools, plan, namespace, made, side);
  } catch (caught) {
    await remove(tools, plan, side, made).catch((error: unknown) => {
      tools.logger.error("cannot undo a failed attach", { interface: made.name, error: reasonOf(error) });
    });
    throw caught;
  }
}

/**
 * The owner's existing pair, if it can be kept. A pair into another namespace, or with an address that IPAM has given
 * to another pod since, is removed.
 */
async function reusable(
  tools: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  side: HostPort,
  link: Link | undefined,
): Promise<Link | undefined> {
  if (link === undefined) return undefined;
  if (link.group === linkGroup.toDelete) {
    await tools.sweeper.sweep();
    return undefined;
  }
  if (leadsInto(tools.socket, link, namespace) && !isStale(tools, plan, namespace, link)) return link;
  await remove(tools, plan, side, link);
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

async function remove({ socket, sweeper }: WiringTools, plan: Plan, side: HostPort, link: Link): Promise<void> {
  await side.disconnect?.(plan);
  takeOutOfService(socket, link);
  side.guard?.dismiss(link);
  await sweeper.sweep();
}

/**
 * Creates both ends, the host end without an alias and in the group of unfinished ones, so that the next start removes
 * it if this process is killed here.
 * @returns `undefined` where one of the two names is taken
 */
async function create(
  tools: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  { master }: HostPort,
): Promise<Link | undefined> {
  const pair = createVeth({
    host: { name: plan.hostIfname, mac: plan.hostMac, master, group: linkGroup.beingMade },
    pod: { name: plan.owner.ifname, mac: plan.podMac, namespaceFd: namespace.fd },
    mtu: plan.mtu,
  });
  const taken = (): boolean => {
    const [refusal] = tools.socket.batch([pair]);
    if (refusal === undefined) return false;
    if (isErrno(refusal, Errno.EEXIST)) return true;
    throw refusal;
  };
  // An interface that is being deleted keeps its name until then, on the node and in the sandbox.
  if (taken()) {
    await tools.sweeper.sweep();
    if (taken()) return undefined;
  }
  const link = findLink(tools.socket, { name: plan.hostIfname });
  if (link !== undefined) return link;
  throw new CniError(CniCode.interfaceFailure, `Cannot use "${plan.hostIfname}": somebody deleted it just now`);
}

function nameTaken({ socket, kernel }: WiringTools, plan: Plan, namespace: NetworkNamespace): CniError {
  const host = findLink(socket, { name: plan.hostIfname });
  using pod = new PodEnd(kernel, namespace);
  const [place, name] = host === undefined ? ["sandbox", plan.owner.ifname] : ["node", plan.hostIfname];
  const holder = host ?? pod.link(name);
  const about = holder === undefined ? "" : `, of kind "${holder.kind ?? "hardware"}" with index ${holder.index}`;
  return new CniError(
    CniCode.interfaceFailure,
    `Cannot create the interface "${name}": the ${place} has one of that name that is not ours${about}`,
  );
}

/** Repairs an existing pair after a killed call, or after changes by others. */
function complete(
  tools: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  link: Link,
  side: HostPort,
): Promise<CniResult> {
  const { socket } = tools;
  const { alias, altName } = plan;
  if (link.alias !== alias) socket.run(setLink(link.name, link.index, { alias }));
  const named = findLink(socket, { altName });
  if (named === undefined) socket.run(addAltName(link.name, link.index, altName));
  return configure(tools, plan, namespace, link, side);
}

async function configure(
  { kernel, socket, logger }: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  host: Link,
  side: HostPort,
): Promise<CniResult> {
  using pod = new PodEnd(kernel, namespace);
  const { ifname } = plan.owner;
  const before = pod.link(ifname);
  if (before === undefined) {
    throw new CniError(CniCode.interfaceFailure, `Cannot set up "${ifname}": somebody deleted it just now`);
  }
  const standingMac = side.guard?.macOf(host) ?? before.mac;
  const mac = plan.macRequested ? plan.podMac : (parseMac(standingMac) ?? plan.podMac);
  plan.request.phases?.enter("port");
  attachPort(socket, plan, side, host, formatMac(mac));
  const connecting = side.connect?.(host, plan, formatMac(mac));
  try {
    // What the switch is asked for goes out first, so that it works meanwhile: the pod's end is set up in one go.
    if (connecting !== undefined) await new Promise(setImmediate);
    if (!side.finishesChecksums) pod.sendWholeChecksums(ifname);
    pod.configure(before, plan);
  } finally {
    // Awaited also on failure, so that nothing continues in the background.
    if (connecting !== undefined) await connecting;
  }
  openPort(socket, plan, side, host);
  pod.announce(before, mac, plan);
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
    side.bridge,
    { name: host.name, mac: host.mac },
    { name: ifname, mac: formatMac(mac), mtu: before.mtu, sandbox: namespace.path },
  );
}

/** Makes a host end a port that is up and lets only the pod's own frames in. */
function attachPort(socket: NetlinkSocket, plan: Plan, side: HostPort, host: Link, podMac: string): void {
  const { name, index, master, up } = host;
  side.guard?.admit(host, plan, podMac);
  runAll(socket, [
    ...(side.master === 0 || side.master === master ? [] : [setLink(name, index, { master: side.master })]),
    ...side.portOptions(host, podMac),
    ...(up ? [] : [setLink(name, index, { up: true })]),
  ]);
}

/**
 * Opens the port, so that the following announcement is not lost, and deletes the node's neighbour entries of these
 * addresses, also static ones.
 */
function openPort(socket: NetlinkSocket, plan: Plan, { gateway }: HostPort, host: Link): void {
  socket.settleCarrier(host.name);
  const messages = plan.ipam.ips.map(({ address }) => forgetNeighbour(gateway.name, gateway.index, address.ip));
  // ENOENT: there was no entry.
  const refusal = socket.batch(messages).find((one) => one !== undefined && one.errno !== Errno.ENOENT);
  if (refusal?.errno === Errno.ENODEV)
    throw new CniError(
      CniCode.tryAgainLater,
      `Cannot connect "${host.name}": somebody deleted the gateway "${gateway.name}" just now`,
    );
  if (refusal !== undefined) throw refusal;
}

function runAll(socket: NetlinkSocket, messages: readonly Message[]): void {
  const refusal = socket.batch(messages).find((one) => one !== undefined);
  if (refusal !== undefined) throw refusal;
}
