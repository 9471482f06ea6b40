/**
 * A WireGuard device, whether the kernel's module handles its packets (generic netlink) or a daemon in user space (its
 * control socket). No policy: which peers it is to have is the data path's.
 */
export type { DeviceState, PeerChange, WireGuardDevice } from "./device.ts";
export { keyBytes, newPrivateKey, publicKeyOf } from "./keys.ts";
export { KernelDevice, wireGuardFamily } from "./netlink-device.ts";
export { UserspaceDevice } from "./uapi-device.ts";
