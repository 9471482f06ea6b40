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
  type NetlinkError,
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
  // Most pods are new. Where one is not, a name of the pair is taken, and only then the kernel is asked about it.
  const fresh = create(tools.socket, plan, namespace, side);
  if (fresh !== undefined) {
    const result = await finish(tools, plan, namespace, fresh, side);
    if (result !== undefined) return result;
  }
  for (const find of [findNamed, findHostLink]) {
    const standing = await reusable(tools, plan, namespace, side, find(tools.socket, plan.owner));
    if (standing !== undefined) return complete(tools, plan, namespace, standing, side);
    // An interface that is being deleted keeps its name until then, on the node and in the sandbox.
    await tools.sweeper.sweep();
    const made = create(tools.socket, plan, namespace, side);
    const result = made === undefined ? undefined : await finish(tools, plan, namespace, made, side);
    if (result !== undefined) return result;
    // An interface of somebody else, or ours without its second name.
  }
  throw nameTaken(tools, plan, namespace);
}

/**
 * Names the new pair and sets up both ends; on failure the pair is deleted again.
 * @returns `undefined` where the owner has another pair already, under another name
 */
async function finish(
  tools: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  made: Link,
  side: HostPort,
): Promise<CniResult | undefined> {
  try {
    isolateHostEnd(tools.kernel, made.name);
    const isNamed = name(tools.socket, plan, made, side);
    if (isNamed) return await configure(tools, plan, namespace, made, side, true);
    await remove(tools, plan, side, made);
    return undefined;
  } catch (caught) {
    await remove(tools, plan, side, made).catch((error: unknown) => {
      tools.logger.error("cannot undo a failed attach", { interface: made.name, error: reasonOf(error) });
    });
    throw caught;
  }
}

/** @returns whether it could have its second name, which the owner's one pair has. @throws {NetlinkError} */
function name(socket: NetlinkSocket, plan: Plan, { name, index }: Link, { group }: HostPort): boolean {
  const refusals = socket.batch([
    // First of all, so that an owner never has two pairs in service.
    addAltName(name, index, plan.altName),
    // Before the group is set, so that every member of the group has these settings.
    setIpv4Options(name, index, {
      acceptRedirects: false,
      ...(group === linkGroup.onSwitch ? { hearsNobody: true } : {}),
    }),
    setLink(name, index, { alias: plan.alias, group }),
  ]);
  if (refusals[0]?.errno === Errno.EEXIST) return false;
  throwFirst(refusals);
  return true;
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
function create(
  socket: NetlinkSocket,
  { hostIfname: name, hostMac, podMac, owner, mtu }: Plan,
  namespace: NetworkNamespace,
  { master }: HostPort,
): Link | undefined {
  const host = { name, mac: hostMac, master, group: linkGroup.beingMade };
  const pod = { name: owner.ifname, mac: podMac, namespaceFd: namespace.fd };
  const [refusal] = socket.batch([createVeth({ host, pod, mtu })]);
  if (isErrno(refusal, Errno.EEXIST)) return undefined;
  if (refusal !== undefined) throw refusal;
  const index = socket.indexOf(name);
  if (index === undefined)
    throw new CniError(CniCode.interfaceFailure, `Cannot use "${name}": somebody deleted it just now`);
  return { ...madeAsAsked, index, name, mtu, master, mac: formatMac(hostMac) };
}

/** What the kernel would tell of every new host end alike. */
const madeAsAsked = {
  up: false,
  kind: "veth",
  group: linkGroup.beingMade,
  isBridgePort: false,
  alias: "",
  hairpin: false,
  learning: true,
} as const;

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
  return configure(tools, plan, namespace, link, side, false);
}

/** @param isNew that both ends are as `create` has just made them */
async function configure(
  { kernel, socket, logger }: WiringTools,
  plan: Plan,
  namespace: NetworkNamespace,
  host: Link,
  side: HostPort,
  isNew: boolean,
): Promise<CniResult> {
  using pod = new PodEnd(kernel, namespace);
  const { ifname } = plan.owner;
  const standing = isNew ? undefined : pod.link(ifname);
  const link = isNew ? pod.made(plan) : standing;
  if (link === undefined) {
    throw new CniError(CniCode.interfaceFailure, `Cannot set up "${ifname}": somebody deleted it just now`);
  }
  const standingMac = side.guard?.macOf(host) ?? standing?.mac;
  const isKept = !plan.macRequested && standingMac !== undefined;
  const mac = (isKept ? parseMac(standingMac) : undefined) ?? plan.podMac;
  const macText = formatMac(mac);
  plan.request.phases?.enter("port");
  attachPort(socket, plan, side, host, { mac, macText });
  const connecting = side.connect?.(host, plan, macText);
  try {
    // What the switch is asked for goes out first, so that it works meanwhile: the pod's end is set up in one go.
    if (connecting !== undefined) await new Promise(setImmediate);
    if (!side.finishesChecksums) pod.sendWholeChecksums(ifname);
    pod.configure(link, plan);
  } finally {
    // Awaited also on failure, so that nothing continues in the background.
    if (connecting !== undefined) await connecting;
  }
  // ovs-vswitchd writes an interface's flags as it remembers them, which may be those of an earlier one of this name.
  if (connecting !== undefined && !socket.stands(host)) socket.run(setLink(host.name, host.index, { up: true }));
  // So that the announcement is not lost: until then the bridge forwards nothing of it.
  socket.settleCarrier(host.name);
  pod.announce(link, mac, plan);
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
    { name: ifname, mac: macText, mtu: link.mtu, sandbox: namespace.path },
  );
}

/**
 * Makes a host end a port that is up and lets only the pod's own frames in, and deletes the node's neighbour entries of
 * the pod's addresses, also static ones.
 */
function attachPort(
  socket: NetlinkSocket,
  plan: Plan,
  side: HostPort,
  host: Link,
  pod: { readonly mac: Uint8Array; readonly macText: string },
): void {
  const { name, index, master, up } = host;
  const { gateway } = side;
  side.guard?.admit(host, plan, pod.macText);
  const messages: Message[] = [];
  if (side.master !== 0 && side.master !== master) messages.push(setLink(name, index, { master: side.master }));
  messages.push(...side.portOptions(host, pod.mac));
  if (!up) messages.push(setLink(name, index, { up: true }));
  const ofPort = messages.length;
  for (const { address } of plan.ipam.ips) messages.push(forgetNeighbour(gateway.name, gateway.index, address.ip));
  const refusals = socket.batch(messages);
  const refusal = refusals.find((one) => one !== undefined);
  if (refusal === undefined) return;
  if (refusals.indexOf(refusal) < ofPort || refusal.errno !== Errno.ENODEV) throw refusal;
  throw new CniError(
    CniCode.tryAgainLater,
    `Cannot connect "${name}": somebody deleted the gateway "${gateway.name}" just now`,
  );
}

function throwFirst(refusals: readonly (NetlinkError | undefined)[]): void {
  const refusal = refusals.find((one) => one !== undefined);
  if (refusal !== undefined) throw refusal;
}
