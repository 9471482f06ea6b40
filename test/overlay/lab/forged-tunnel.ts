import type { NetworkNamespace } from "../../support/network-namespace.ts";

const bytesOf = (address: string): number[] => address.split(".").map(Number);

/** With its checksum (RFC 1071) at `at`. */
function summed(bytes: readonly number[], at: number): number[] {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += ((bytes[i] ?? 0) << 8) | (bytes[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return bytes.with(at, (~sum >> 8) & 0xff).with(at + 1, ~sum & 0xff);
}

/** A ping as it would come out of a Geneve tunnel, of the project 0 and from an address that nobody has. IPv4. */
export function forgedPing(to: string): Uint8Array {
  const geneve = [0, 0, 0x65, 0x58, 0, 0, 0, 0];
  const ethernet = [0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 2, 0, 0, 0, 0, 9, 8, 0];
  const echo = summed([8, 0, 0, 0, 0, 1, 0, 1], 2);
  const ip = summed([0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0, 0, ...bytesOf("10.10.77.7"), ...bytesOf(to)], 10);
  return Uint8Array.from([...geneve, ...ethernet, ...ip, ...echo]);
}

/** Sends one to a pod, as if `from` were a node and the end of a tunnel to `node`. */
export async function sendForgedPing(from: NetworkNamespace, node: string, pod: string): Promise<void> {
  const socket = await from.within(() => Bun.udpSocket({}));
  try {
    socket.send(forgedPing(pod), 6081, node);
  } finally {
    socket.close();
  }
}
