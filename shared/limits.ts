/** Every bound of Pipette, with its unit in the name and its reason. */
export const limits = {
  /** A network configuration is a few kB; 1 MiB leaves room for long `runtimeConfig` and `prevResult`. */
  stdinBytes: 1024 * 1024,
  /** A file's name, with room for a suffix. */
  pluginTypeChars: 240,
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
  /** The most that a configuration may ask for; no runtime waits longer. */
  longestTimeoutMs: 600_000,
  /** RFC 791: what every link must carry. The most: a length field of 16 bits. */
  smallestMtu: 68,
  largestMtu: 65_535,
  /** Brackets within brackets, in JSON from outside: a configuration has about ten. */
  jsonDepth: 256,
  /** A text of this length is harmless however deep it is nested: what walks it ends within a millisecond. */
  jsonShortChars: 16 * 1024,
  /** A message of an error, and its details: far longer than any sentence, and nothing that fills a log. */
  errorChars: 4096,
  /** What a delegated plugin may say on stderr before it is cut off; the runtime's log takes it all. */
  delegateLogBytes: 64 * 1024,
  /** Of that, what goes into the details of its error. */
  delegateDetailChars: 500,
  /** A plugin's log file; as much again is kept from before. */
  logFileBytes: 5 * 1024 * 1024,
  /** A process that rotates the log holds its lock for a millisecond; an older lock has lost its holder. */
  logLockMs: 10_000,
  /** W3C Trace Context and Baggage: what every party must pass on. */
  traceHeaderBytes: 8 * 1024,
  /** How long a writer waits for another process's SQLite transaction, which lasts about a millisecond. */
  storeLockMs: 5_000,
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
  /** Of those, at work or with answers that are not read yet: what servers of gRPC usually take. The others wait. */
  callsAtWork: 100,
  /** Of one server: as many as may wait to be accepted. Beyond, the longest idle ones end. */
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
  /** Between two looks of a plugin for an agent that is being replaced: as above; hundreds of plugins may look. */
  agentLookFirstMs: 20,
  agentLookMostMs: 250,
  /** Before the deadline of a call that waits for the agent's start: the reason has to be there in time. */
  startAnswerMs: 1_000,
  /** Between two attempts of a connection that stays: as above. */
  channelRetryFirstMs: 50,
  channelRetryMostMs: 1000,
  /** A range smaller than this holds no address to give: host-local's rule. */
  smallestRangePrefix4: 30,
  smallestRangePrefix6: 126,
  /** A released address stays out of use this long: conntrack entries and ARP caches of peers age out meanwhile. */
  cooldownMs: 30_000,
  /** A configuration may ask for this much at most: longer is a slip of units. */
  longestCooldownMs: 24 * 3600_000,
  /** Ranges of one list: each is compared with all others, at every ADD. */
  ranges: 1024,
  /** Addresses that one ADD may ask for: each needs a range set of its own, and the annotations of a pod may say them. */
  requestedAddresses: 64,
  /** Entries of one `exclude`: a block counts as one, and ADD reads them all. */
  excludeEntries: 1024,
  /** A network's settings file: room for the longest `exclude` and many ranges. */
  settingsFileBytes: 256 * 1024,
  /** Addresses of pods that have left, remembered for sticky networks; some 2 MB. */
  rememberedAddresses: 16_384,
  /** Cooled-down leases that one allocation clears away: more than come in per allocation, and little enough to stay flat. */
  cooledPerAllocation: 32,
  /** Pages in the log of the lease database when it is moved: each process reads them all at its start, each move waits for the disk. */
  walPages: 64,
  /** host-local holds its lock for milliseconds, a take-over of 100,000 leases for seconds. */
  hostLocalLockMs: 30_000,
  /** A file of a host-local directory holds a container id and an interface name. */
  hostLocalFileBytes: 1024,
  /** A resolv.conf has a few lines. */
  resolvConfBytes: 64 * 1024,
  /** A lease of an earlier boot may be taken away after this long without any sign of its owner. */
  suspectGraceMs: 5 * 60_000,
  /** Looks of the janitor for which an interface has to be missing before its lease is given back: some minutes, in which a DEL comes. */
  vanishedLooks: 30,
  /** One call of HNS: a busy node takes seconds, a call that hangs never returns. An ADD must hear of it while it waits. */
  hcnDeadlineMs: 15_000,
  /** Calls of HNS at a time, so that a slow one does not hold up all others. */
  hcnThreads: 3,
  /** Calls that were given up and have not come back: each keeps a thread, and so many of them mean that HNS itself hangs. */
  hcnLeakedThreads: 8,
} as const;
