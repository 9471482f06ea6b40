/** Every bound of the registry in etcd, with its unit in the name and its reason. */
export const etcdLimits = {
  /** One answer: a list of 5,000 nodes has 2 MB, and grpc-js' own bound would end at some 12,000. */
  messageBytes: 64 * 1024 * 1024,
  /** One try at one member. A member that is stopped or cut off never answers; the next one does. */
  tryMs: 2_000,
  /** The same where there is no other: then an answer that comes late is better than asking again. */
  onlyTryMs: 5_000,
  /** A whole call with all its tries: longer than a cluster takes to choose a leader (2 to 4 s with etcd's own times). */
  callMs: 10_000,
  /** Between two tries: doubles from the first to the second, and each waits for a random part of it. */
  retryFirstMs: 50,
  retryMostMs: 1_000,
  /** Between two attempts of a channel to connect: grpc-js' own bound is two minutes. */
  connectRetryFirstMs: 100,
  connectRetryMostMs: 2_000,
  /** HTTP/2 pings: etcd ends connections that send more than one in 5 s. */
  pingMs: 10_000,
  pingAnswerMs: 3_000,
  /** A watch that is silent for so long is asked for its progress, and given up after as long again. */
  watchSilenceMs: 2_000,
  /** Keys of one request while a list is read: etcd's memory grows with what 512 nodes ask for at once. */
  pageKeys: 500,
  /** Between two lists, half as long again at most: old versions of etcd may lose an event after a compaction. */
  relistMs: 10 * 60_000,
  /** What changes within this time becomes one new map. */
  publishMs: 10,
  /** A node that has not been heard of for this long counts as lost; it is heard of three times as often. */
  leaseSeconds: 30,
  keepAliveMs: 10_000,
  /** Saying that a node stops: it is found out without it, too. */
  farewellMs: 1_000,
  /** Subnets tried by one claim before the whole attempt begins again. */
  claims: 64,
  /** A record has some hundred bytes; what is longer was not written by us. */
  recordChars: 16 * 1024,
  /** OpenShift SDN's bound on subnets of one network, in bits. */
  subnetBits: 24,
  /** Random guesses before a free number is looked for one by one. */
  guesses: 32,
} as const;
