import { dlopen, ptr } from "bun:ffi";
import type { NetworkNamespace } from "../../support/network-namespace.ts";

const AF_INET = 2;
const SOCK_DGRAM = 2;
const SIOCETHTOOL = 0x8946;
/** Turns checksums of sent packets over to the interface, or takes them back. */
const ETHTOOL_STXCSUM = 0x17;

const libc = dlopen("libc.so.6", {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  ioctl: { args: ["i32", "u64", "ptr"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
} as const).symbols;

/**
 * Lets the kernel itself fill in the checksums of what is sent over `interfaceName`. A veth leaves them out, and Open
 * vSwitch in user space takes such packets for damaged: pings pass, but no TCP.
 */
export function withoutChecksumOffload(namespace: NetworkNamespace, interfaceName: string): void {
  // struct ethtool_value: command, off.
  const value = new Uint32Array(new ArrayBuffer(8));
  value[0] = ETHTOOL_STXCSUM;
  // struct ifreq: name, and from byte 16 on the address of the above.
  const request = new Uint8Array(new ArrayBuffer(40));
  request.set(new TextEncoder().encode(interfaceName));
  new DataView(request.buffer).setBigUint64(16, BigInt(ptr(value)), true);
  const status = namespace.within(() => {
    const socket = libc.socket(AF_INET, SOCK_DGRAM, 0);
    try {
      return libc.ioctl(socket, BigInt(SIOCETHTOOL), ptr(request));
    } finally {
      libc.close(socket);
    }
  });
  if (status !== 0) throw new Error(`Cannot turn off checksum offload of "${interfaceName}": the kernel refused`);
}
