import type { Capture } from "./capture.ts";

/** Of Ethernet, IPv4 and UDP. */
const udpPayload = 14 + 20 + 8;
const types = { greeting: 1, answer: 2 } as const;

/** The messages by which nodes agree on keys of WireGuard that a node has sent. IPv4. */
export const messagesOf = (capture: Capture, type: keyof typeof types, source: string): readonly Uint8Array[] =>
  capture.of("wireguard", source).filter((frame) => frame[udpPayload] === types[type]);
