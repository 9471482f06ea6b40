/** Every bound of the OVSDB client, with its unit in the name and its reason. */
export const ovsdbLimits = {
  /** One message either way. The first state of a bridge with 10,000 ports, all columns that we know, has some 10 MB. */
  messageBytes: 32 * 1024 * 1024,
  /** Brackets within brackets: RFC 7047 needs about ten. */
  messageDepth: 64,
  /** What waits to be written while the server does not read; beyond, the connection ends. */
  unsentBytes: 64 * 1024 * 1024,
  /** Requests without an answer: far more than the pods of a node. */
  requests: 4096,
  /** Rows of the local view: a bridge with 10,000 ports has 20,000. */
  rows: 262_144,
  /** A local server takes a connection at once; one over TCP in a round trip. */
  connectMs: 5_000,
  /** A transaction is answered within milliseconds, or when the disk has it; the caller may give another bound. */
  requestMs: 10_000,
  /** Silence after which the server is asked for an echo, and again as long for the echo to come. */
  probeMs: 5_000,
  /** Between two attempts to connect: doubles from the first to the second. A server that starts again takes 100 ms. */
  retryFirstMs: 50,
  retryMostMs: 1_000,
} as const;
