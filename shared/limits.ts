/** Every bound of Pipette, with its unit in the name and its reason. */
export const limits = {
  /** A network configuration is a few kB; 1 MiB leaves room for long `runtimeConfig` and `prevResult`. */
  stdinBytes: 1024 * 1024,
  /** Linux: IFNAMSIZ less the final zero. */
  ifnameBytes: 15,
  /** Both go into one interface alias (256 bytes in the kernel) beside the interface name. */
  containerIdChars: 128,
  networkNameChars: 80,
  /** A runtime's own bound on ADD is minutes; half a minute covers an agent that restarts. */
  addTimeoutMs: 30_000,
  /** DEL is durable without the agent, so it waits less. */
  delTimeoutMs: 10_000,
  /** STATUS is polled every few seconds by the kubelet. */
  statusTimeoutMs: 5_000,
  /** How long a writer waits for another process's SQLite transaction, which lasts about a millisecond. */
  storeLockMs: 5_000,
  /** One gRPC message either way; the same bound that grpc-js has by default. */
  messageBytes: 4 * 1024 * 1024,
  /** HPACK dynamic table that we offer (RFC 9113, 6.5.2: the initial value). */
  headerTableBytes: 4096,
  /** A header block over HEADERS and CONTINUATION frames. */
  headerBlockBytes: 64 * 1024,
  /** What a server may send ahead on one call: a quarter of the longest answer, so most answers need no update. */
  receiveWindowBytes: 1024 * 1024,
  /** PING and SETTINGS frames on one call, each of which wants an acknowledgement; a real server sends a few. */
  controlFrames: 1000,
  /** Between two attempts to connect while the listener's queue is full: doubles from the first to the second. */
  connectRetryFirstMs: 1,
  connectRetryMostMs: 32,
  /** A range smaller than this holds no address to give: host-local's rule. */
  smallestRangePrefix4: 30,
  smallestRangePrefix6: 126,
  /** A released address stays out of use this long: conntrack entries and ARP caches of peers age out meanwhile. */
  cooldownMs: 30_000,
  /** A lease of an earlier boot may be taken away after this long without any sign of its owner. */
  suspectGraceMs: 5 * 60_000,
} as const;
