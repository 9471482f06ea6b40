/**
 * What our own sentences mean: each row of the table in docs/troubleshooting.md, by the words that it is known by. A
 * test holds the two together, and another asks the real parts for the sentences.
 */
export interface Symptom {
  /** Stays the same from release to release. */
  readonly code: string;
  /** The first cell of its row; absent: it is a runtime's sentence, and the doctor's table has it. */
  readonly row?: string;
  /** One of these lists has to stand in the sentence, all of its words; capitals count. */
  readonly says: readonly (readonly string[])[];
  /** After `POD has no network: `, or by itself. */
  readonly cause: string;
  readonly todo: readonly string[];
  /** It tells of the caller, and not of the pod: the question has to be asked anew. */
  readonly isOfAsker?: true;
  /** It has a cause of its own, which somebody else may tell: the last word of the agent, or its configuration. */
  readonly isEffect?: true;
  /** The code of the one symptom that it may be the cause of; with any other it says nothing of the cause. */
  readonly explains?: string;
}

const readMessage = "the message names what to change";

/** In the order in which they are tried: the closer one before the wider one. */
export const symptoms: readonly Symptom[] = [
  {
    code: "not-root",
    row: '"this user may not connect (EACCES)"',
    says: [["this user may not connect"], ["may not connect to"]],
    cause: "whoever asks may not speak to the agent: nearly everything of Pipette is for root alone",
    todo: ["ask again as root, or from outside of the node with a kubeconfig"],
    isOfAsker: true,
  },
  {
    code: "waits-to-join",
    row: "code 11, the agent waits to join",
    says: [["the agent waits to join"], ["Cannot join:"]],
    cause:
      "the node has not joined the cluster: its registry does not answer, has no entry or subnet for it, or its name belongs to another machine",
    todo: [readMessage, '"pipette nodes list" shows what the registry says of this node'],
  },
  {
    code: "whole-program-lost",
    row: 'code 5, `Cannot start "/usr/libexec/pipette/pipette"`',
    says: [
      ["Cannot start", "/pipette/pipette"],
      // As it is on Windows, and where the small one was copied over the whole one.
      ["Cannot start the whole program"],
      ["Cannot go on:", "the small program"],
    ],
    cause: "the small program among the runtime's plugins has lost its whole one",
    todo: ["pipette install of the release's executable; in a cluster restart the node's pipette-agent pod"],
  },
  {
    code: "socket-gone",
    row: "the agent ended: its socket is gone",
    says: [["Cannot be reached any more: the socket"]],
    cause: "the agent ended because somebody removed its socket",
    todo: ["find out who cleans that directory; the agent makes a new one when it starts"],
  },
  {
    code: "database-gone",
    row: "the agent ended: the database is damaged or gone",
    says: [["Cannot go on with the lease database"], ["lease database", "its content is damaged"]],
    cause: "the agent ended because its lease database is damaged or gone",
    todo: ["start the agent: it rebuilds the database", "then look at leases.db.damaged-… and at the disk"],
  },
  {
    code: "database-open-to-others",
    row: "code 101, the database or its directory can be written by others, or belongs to another user",
    says: [
      ["lease database", "can be written by others"],
      ["lease database", "belongs to user"],
    ],
    cause: "no address is given out, because another user could give one pod's address to another",
    todo: ["find out who has been there", '"chmod go-w" and "chown root" what the message names'],
  },
  {
    code: "configuration-open-to-others",
    row: "the agent does not start: agent.yaml, or a file it names, can be written by others",
    says: [
      ["can be written by others", "only root"],
      ["belongs to user", "only root"],
    ],
    cause: "the agent does not start, because whoever can write its configuration acts as root",
    todo: ["find out who has been there", '"chown root" and "chmod go-w" what the message names'],
  },
  {
    code: "unit-forbids-directory",
    row: "the agent does not start, EROFS",
    says: [["EROFS"], ["ead-only file system"]],
    cause:
      "the agent does not start: agent.yaml names a directory that its unit does not allow, or that is mounted read-only",
    todo: ['"pipette install" again, which writes the unit for the present configuration'],
  },
  {
    code: "database-unwritable",
    row: "the database cannot be written",
    says: [
      ["lease database", "the disk is full"],
      ["lease database", "it is read-only"],
      ["lease database", "it cannot be opened"],
      ["lease database", "reading or writing it failed"],
    ],
    cause: "the lease database cannot be written",
    todo: ["make room, or the file system writable: the message names path and reason; nothing was changed"],
  },
  {
    code: "leases-lost",
    row: "code 101, some leases were lost",
    says: [["some leases", "were lost"]],
    cause: "the lease database was damaged, and it is not known yet which addresses are in use",
    todo: ['"pipette ipam check" says what to do; the agent makes its own networks complete when it starts'],
  },
  {
    code: "pool-exhausted",
    row: "code 101, no address is free",
    says: [
      ["has 0 of", "addresses free"],
      ["Cannot give a new pod of network", "are taken"],
    ],
    cause: "no address of its network is free on the node",
    todo: [
      '"pipette ipam stats" and "pipette ipam list" show who has them',
      'leases of pods that are gone: "pipette doctor --repair"; "pipette ipam gc" with the runtime\'s list',
      "otherwise end pods, or give the node a larger block",
    ],
  },
  {
    code: "record-refused",
    row: "code 11, no address is given because of the node's record",
    says: [["Cannot give a pod an address:"]],
    cause:
      "the node's record in the registry gives it no addresses: it was released, its name was taken, or it has another registry",
    todo: ['"pipette nodes list", then as docs/nodes.md says under "Starting, leaving, moving"'],
  },
  {
    code: "project-unconfirmed",
    row: 'code 11, or refused: project "…" has no VNID here, or stays with VNID …',
    says: [["project", "has no VNID here"], ["project", "stays with VNID"], ["VNID of project"], ["VNID to project"]],
    cause: "the project's VNID was changed or is shared, and nobody has confirmed it",
    todo: [
      '"pipette tenants list", then the command in the message, or "pipette tenants isolate PROJECT"',
      "find out who wrote it",
    ],
  },
  {
    code: "node-left-out",
    row: '`refused: node "…" is left out`',
    says: [["node", "is left out:"]],
    cause: "another node's record is not accepted here, so its pods and those of this node do not reach each other",
    todo: [
      'correct the record: "pipette nodes release", the file, or the Node; compare networks and clusterSubnets of both',
    ],
  },
  {
    code: "agent-away",
    row: "code 11, nobody listens (ENOENT, ECONNREFUSED)",
    says: [
      ["nobody listens"],
      ["nobody serves"],
      ["connecting fails with ENOENT"],
      ["connecting fails with ECONNREFUSED"],
    ],
    cause: "no agent runs on the node, or it listens at another socket",
    isEffect: true,
    todo: [
      '"systemctl status pipette-agent", or the log of the agent\'s pod on the node, tells what keeps it',
      "compare socket in both configurations",
    ],
  },
  {
    code: "agent-hangs",
    row: "code 11, deadline",
    says: [["gives no answer within"], ["there is no answer after", "ms"]],
    cause: "the agent accepts calls and does not answer",
    todo: ["read its log, look at the machine's load, restart it: nothing is lost"],
  },
  {
    code: "name-taken",
    row: "code 102, the interface name is taken",
    says: [["has one of that name that is not ours"], ["a port of that name that is not ours"]],
    cause: "something that is not Pipette's has the name of its interface",
    todo: ["remove what has that name, or choose another name"],
  },
  {
    code: "mac-taken",
    row: "code 102, the hardware address is the bridge's or another sandbox's",
    says: [["Cannot use the hardware address"]],
    cause:
      "it asks for a hardware address that the bridge or another sandbox has, or that is none of a single interface",
    todo: ["ask for another one (capability mac)"],
  },
  {
    code: "del-overtaken",
    row: "code 104 for a DEL",
    says: [["it has been added again since the DEL began"]],
    cause: "a late DEL met a sandbox that was added again since, and changed nothing",
    todo: ["nothing: the sandbox keeps its network"],
  },
  {
    code: "network-unknown",
    row: "code 7, the network is not configured",
    says: [["Cannot serve network", "wanted one of these"]],
    cause: "the runtime's configuration names a network that the agent does not have",
    todo: ["compare name in the runtime's configuration with networks in agent.yaml"],
  },
  {
    code: "data-directories-differ",
    row: "code 7, `ipam.dataDir`",
    says: [["ipam.dataDir", "where this agent keeps the leases"]],
    cause: "plugin and agent name different data directories",
    todo: ["make ipam.dataDir and dataDir of agent.yaml the same"],
  },
  {
    code: "log-file-refused",
    row: "code 7, `logFile`",
    says: [["logFile", "whose name ends in"]],
    cause: "logFile of the runtime's configuration names no log",
    todo: ["choose a name that ends in .log; DEL works meanwhile"],
  },
  {
    code: "plugin-missing",
    says: [["failed to find plugin"]],
    cause: "the runtime does not find a plugin of its network configuration",
    todo: ['"pipette install" puts Pipette\'s own; others, such as portmap, belong beside them (docs/operations.md)'],
  },
  {
    code: "no-configuration",
    says: [["cni plugin not initialized"], ["cni config uninitialized"], ["no network config found"]],
    cause: "the runtime has no network configuration: the agent writes it last, when it can serve",
    isEffect: true,
    todo: ['"pipette status" says what the agent waits for; "pipette doctor" whether the file is there and the first'],
  },
  {
    code: "connections-ended",
    row: "the log says that connections were ended to make room",
    says: [["connections were ended to make room"]],
    explains: "agent-hangs",
    cause: "more clients than the agent serves keep its socket busy",
    todo: ["find out who connects: only root can"],
  },
];

/** The first that a sentence shows. */
export const symptomOf = (text: string): Symptom | undefined =>
  symptoms.find(({ says }) => says.some((words) => words.every((word) => text.includes(word))));
