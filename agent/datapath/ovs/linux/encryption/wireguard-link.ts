import { CniCode, CniError } from "../../../../../shared/errors.ts";
import type { Cidr } from "../../../../../shared/net/ip.ts";
import { commandMs, runProgram } from "../../../../platform/run-program.ts";
import {
  createWireGuard,
  deleteLink,
  Errno,
  isErrno,
  type Kernel,
  type Link,
  listLinks,
  type NetlinkSocket,
  readLink,
  setLink,
} from "../../../../protocols/netlink/mod.ts";
import {
  KernelDevice,
  UserspaceDevice,
  type WireGuardDevice,
  wireGuardFamily,
} from "../../../../protocols/wireguard/mod.ts";
import { findLink } from "../../../linux/host-links.ts";
import { ignoreRouters, turnOnForwarding } from "../../../linux/node-sysctls.ts";

/** The interface and who handles its packets. */
export interface OpenedDevice extends Disposable {
  readonly link: Link;
  readonly device: WireGuardDevice;
  /** `false`: a daemon in user space. */
  readonly isKernel: boolean;
}

interface Place {
  readonly kernel: Kernel;
  /** In the node's namespace. */
  readonly socket: NetlinkSocket;
  readonly name: string;
  /** Bytes. */
  readonly mtu: number;
  readonly podSubnets: readonly Cidr[];
}

const daemon = "wireguard-go";
/** Where every daemon listens; its name is that of the device. */
const controlPath = (name: string): string => `/var/run/wireguard/${name}.sock`;
/** Marks a device as ours, so that one of somebody else's is not taken. */
const alias = "pipette encryption";

/**
 * Opens the device, and makes it where there is none: with the kernel's module, else with the daemon, which goes on when
 * the agent ends. It is up then, and may have no key yet.
 * @param onLost called when a daemon ends, and its device with it
 * @throws {CniError} 102 where there is neither module nor daemon, or the name is somebody else's
 */
export async function openDevice(place: Place, onLost: () => void): Promise<OpenedDevice> {
  const { socket, name, mtu } = place;
  const standing = findLink(socket, { name });
  if (standing !== undefined && standing.alias !== alias && !(await isUnused(place, standing))) throw nameTaken(name);
  const family = findFamily(place);
  if (standing === undefined) await make(place, family);
  const link = findLink(socket, { name });
  if (link === undefined) throw missing(name, "it went at once");
  ignoreRouters(name);
  turnOnForwarding([{ subnets: place.podSubnets, device: name }]);
  const isKernel = link.kind === "wireguard" && family !== undefined;
  const device = isKernel
    ? new KernelDevice(place.kernel.openGenericSocket(), family, name)
    : await UserspaceDevice.connect(controlPath(name), onLost);
  try {
    // A daemon that still starts would set an MTU of its own afterwards, and pad packets for that.
    await device.read();
    socket.run(setLink(name, link.index, { up: true, mtu, alias }));
  } catch (caught) {
    device[Symbol.dispose]();
    throw caught;
  }
  return { link, device, isKernel, [Symbol.dispose]: () => device[Symbol.dispose]() };
}

/**
 * Takes devices of ours away, whatever their names are; their daemons end with them.
 * @param kept name of the one that stays
 * @returns whether there was any
 * @throws {NetlinkError}
 */
export function removeDevices(socket: NetlinkSocket, kept?: string): boolean {
  const gone = socket.dump(listLinks(), readLink).filter((link) => link.alias === alias && link.name !== kept);
  for (const { name, index } of gone) socket.run(deleteLink(name, index));
  return gone.length > 0;
}

/** A device that an agent made and could not mark before it was killed has no key. */
async function isUnused(place: Place, link: Link): Promise<boolean> {
  const { name } = place;
  try {
    const family = findFamily(place);
    const isKernel = link.kind === "wireguard" && family !== undefined;
    using device = isKernel
      ? new KernelDevice(place.kernel.openGenericSocket(), family, name)
      : await UserspaceDevice.connect(controlPath(name), () => undefined);
    const { publicKey, peers } = await device.read();
    return publicKey === undefined && peers.length === 0;
  } catch {
    return false;
  }
}

function findFamily({ kernel }: Place): number | undefined {
  using socket = kernel.openGenericSocket();
  return wireGuardFamily(socket);
}

async function make({ socket, name, mtu }: Place, family: number | undefined): Promise<void> {
  try {
    if (family !== undefined) return socket.run(createWireGuard(name, mtu));
  } catch (caught) {
    if (!isErrno(caught, Errno.EOPNOTSUPP)) throw caught;
  }
  // It goes into the background by itself once the device is there and it listens.
  const ended = await runProgram(daemon, [name], { deadlineMs: commandMs, env: { LOG_LEVEL: "silent" } });
  if (ended.isAbsent)
    throw missing(name, `the kernel has no WireGuard and the program "${daemon}" is not installed, wanted one of them`);
  if (ended.failure !== "") throw missing(name, `"${daemon}": ${ended.failure}, ${lastLine(ended.stderr)}`);
}

const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";

const missing = (name: string, is: string): CniError =>
  new CniError(CniCode.interfaceFailure, `Cannot make the WireGuard device "${name}": ${is}`);

const nameTaken = (name: string): CniError =>
  missing(name, 'there is an interface of that name that is not ours, wanted another name in "ovs.wireguard.device"');
