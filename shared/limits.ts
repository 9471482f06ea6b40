/**
 * Bounds that more than one room uses, with their units in the names and their reasons. All others lie with their
 * owners.
 */
export const limits = {
  /** A runtime's own bound on ADD is minutes; half a minute covers an agent that restarts. */
  addTimeoutMs: 30_000,
  /** DEL is durable without the agent, so it waits less. */
  delTimeoutMs: 10_000,
  /** STATUS is polled every few seconds by the kubelet. */
  statusTimeoutMs: 5_000,
  /** The most that a configuration may ask for; no runtime waits longer. */
  longestTimeoutMs: 600_000,
  /** RFC 791: what every link must carry. The most: a length field of 16 bits. */
  smallestMtu: 68,
  largestMtu: 65_535,
  /** One gRPC message either way; the same bound that grpc-js has by default. */
  messageBytes: 4 * 1024 * 1024,
  /** HPACK dynamic table that we offer (RFC 9113, 6.5.2: the initial value). */
  headerTableBytes: 4096,
  /** A header block over HEADERS and CONTINUATION frames. */
  headerBlockBytes: 64 * 1024,
  /** What a peer may send ahead: a quarter of the longest message, so most calls need no update. */
  receiveWindowBytes: 1024 * 1024,
  /** Frames that cost work and carry nothing on, such as PING and resets, between two that do; a real peer sends a few. */
  controlFrames: 1000,
  /** Calls on one connection at a time: a node has a tenth of that in pods. */
  concurrentStreams: 1000,
  /** Calls of one connection that run or have unread answers: the usual number of gRPC servers. The others wait. */
  callsAtWork: 100,
  /** Connections of one server: as many as may wait to be accepted. Beyond that, the longest idle ones end. */
  connections: 4096,
  /** Requests in a server's memory, over all its connections: sixteen of the longest. */
  requestBytesHeld: 64 * 1024 * 1024,
  /** Answers that one connection's peer does not read: sixteen of the longest. Beyond, the connection ends. */
  answerBytesHeld: 64 * 1024 * 1024,
  /** A stream's next message is made once fewer bytes than this wait: four frames, so the wire never runs dry. */
  streamRoomBytes: 64 * 1024,
  /** Handed to the kernel at a time: about what a unix socket takes; the rest waits where it is counted. */
  writeBytes: 256 * 1024,
  /** `grpc-message` as it is sent: far longer than any sentence, and below every client's bound on headers. */
  statusMessageBytes: 8 * 1024,
  /** A connection without a call, or one that takes nothing, ends after this long: half-open ones would stay for ever. */
  idleConnectionMs: 30_000,
  /** How long a connection's opening frames wait for the answer of its first call, to go out in one packet with it. */
  openingMs: 20,
  /** Connections that may wait to be accepted: more than the pods of a node; also net.core.somaxconn's usual value. */
  listenBacklog: 4096,
  /** Between two attempts to connect while the listener's queue is full: doubles from the first to the second. */
  connectRetryFirstMs: 1,
  connectRetryMostMs: 32,
  /** Between two attempts of a connection that stays: as above. */
  channelRetryFirstMs: 50,
  channelRetryMostMs: 1000,
  /** A range smaller than this holds no address to give: host-local's rule. */
  smallestRangePrefix4: 30,
  smallestRangePrefix6: 126,
  /** A released address stays out of use this long: conntrack entries and ARP caches of peers age out meanwhile. */
  cooldownMs: 30_000,
  /** The longest cooldown that a configuration may ask for: a longer one is a mistake of units. */
  longestCooldownMs: 24 * 3600_000,
  /** Entries of one `exclude`: a block counts as one, and ADD reads them all. */
  excludeEntries: 1024,
  /** A lease of an earlier boot may be reclaimed after this long without any sign of its owner. */
  staleGraceMs: 5 * 60_000,
  /** One call of HNS: a busy node takes seconds, a call that hangs never returns. An ADD must hear of it while it waits. */
  hcnDeadlineMs: 15_000,
  /** Calls of HNS at a time, so that a slow one does not hold up all others. */
  hcnThreads: 3,
  /** Abandoned calls that have not returned: each keeps a thread, and this many mean that HNS itself hangs. */
  hcnLeakedThreads: 8,
} as const;
