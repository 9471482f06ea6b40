/** Every bound of the OpenFlow client, with its unit in the name and its reason. */
export const bounds = {
  /** A message's length is a field of 16 bits (OpenFlow 1.5.1, 7.1.1). */
  messageBytes: 0xffff,
  /** The parts of one multipart reply, joined: 100,000 long flows, which take ten times as much once they are read. */
  multipartBytes: 32 * 1024 * 1024,
  /** Handed to the socket and not yet taken by the switch: ten thousand flows are 2 MB. Beyond, requests are refused. */
  unsentBytes: 64 * 1024 * 1024,
  /** Requests without an answer yet; a bundle counts each of its messages. */
  pendingRequests: 200_000,
  /** A bundle's messages: the switch answers "too many" on its own much later. */
  bundleMessages: 100_000,
  /** Errors kept of one bundle or batch, the first ones: one wrong template repeats in every flow. */
  errorsKept: 20,
  /** How often actions may hold actions: ct within clone is two, and nobody needs four. */
  actionDepth: 4,
  /** A switch on the same machine answers within milliseconds, and within seconds where the machine is overloaded. */
  requestMs: 10_000,
  /** Connecting and HELLO: as above. */
  connectMs: 5_000,
  /** Silence after which an echo is asked for; it ends the connection when it is not answered in `requestMs`. */
  idleMs: 15_000,
  /** A packet inside of a message: what is left of 64 KiB by the heads around it. */
  packetBytes: 0xffff - 2048,
} as const;
