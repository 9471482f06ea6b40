import type {
  DocumentPeriod,
  DocumentPod,
  DocumentProbe,
  DocumentTable,
  NodeDocumentOf,
  NodeKind,
} from "../../shared/documents/mod.ts";

/** A node to be made up. */
export interface GeneratedNode {
  readonly name: string;
  readonly number: number;
  readonly pods: number;
  /** Names of the first pods, instead of made ones. */
  readonly podNames?: readonly string[];
}

type Documents = { [K in NodeKind]: NodeDocumentOf<K> };

/** The moment from which all times of a generated cluster count, so that pictures of it are the same. */
export const generatedAtMs = Date.UTC(2026, 10, 23, 12, 0, 0);

export const generatedNodes = (count: number, pods: number): readonly GeneratedNode[] =>
  Array.from({ length: count }, (_, i) => ({ name: `node-${i + 1}`, number: i + 1, pods }));

const apps = ["web", "api", "cart", "db", "cache", "mail", "jobs", "auth"];
const namespaces = ["shop", "shop", "accounts", "monitoring"];

const addressOf = (node: number, i: number): string => `10.20.${node}.${i + 2}`;
const hex = (value: number): string => value.toString(16).padStart(2, "0");
const at = (minutes: number): string => new Date(generatedAtMs - minutes * 60_000).toISOString();

function podOf({ number, podNames = [] }: GeneratedNode, i: number): DocumentPod {
  const app = apps[(i + number) % apps.length] ?? "web";
  return {
    podNamespace: namespaces[(i * 7 + number) % namespaces.length] ?? "shop",
    podName: podNames[i] ?? `${app}-${number}-${i}`,
    podUid: `uid-${number}-${i}`,
    network: "pods",
    containerId: `${hex(number)}${hex(i)}`.padEnd(64, "c0ffee"),
    ifname: "eth0",
    hostIfname: `veth${hex(number)}${hex(i)}`,
    ownLease: true,
    addresses: [`${addressOf(number, i)}/24`],
    gateway: `10.20.${number}.1`,
    mac: `0a:00:0a:14:${hex(number)}:${hex(i + 2)}`,
    port: i + 3,
  };
}

const heldBy = (
  { network, containerId, ifname, podNamespace = "", podName = "" }: DocumentPod,
  address: string,
  when: { readonly generation: number; readonly fromMs: number; readonly untilMs?: number },
): DocumentPeriod => ({ network, address, containerId, ifname, podNamespace, podName, ...when });

/** Of the way to another node's pods. */
const probesOf = (from: number, to: number): readonly DocumentProbe[] => [
  {
    address: `10.20.${to}.1`,
    state: "reachable",
    failures: 0,
    rttMicros: 300 + ((from * 31 + to * 17) % 900),
    lastRttMicros: 280 + ((from * 31 + to * 17) % 900),
    seenAtMs: generatedAtMs - ((from + to) % 60) * 1000,
  },
];

const tableNames = [
  "Classifier",
  "SpoofGuard",
  "ARPResponder",
  "ConntrackState",
  "ServiceLB",
  "EgressRule",
  "L3Forwarding",
  "IngressRule",
  "L2Forwarding",
  "Output",
];

function tablesOf(node: GeneratedNode): readonly DocumentTable[] {
  return tableNames.map((name, number) => ({
    name,
    number,
    flows: name === "ARPResponder" ? 0 : 3 + ((number * 5) % 7) + (number === 1 ? node.pods : 0),
    packets: 1000 * (tableNames.length - number) + node.number,
    bytes: 84_000 * (tableNames.length - number),
  }));
}

/** Every kind of document of one node among others. */
export function documentsOfNode(node: GeneratedNode, all: readonly GeneratedNode[]): Documents {
  const pods = Array.from({ length: node.pods }, (_, i) => podOf(node, i));
  const head = { version: 1, node: node.name } as const;
  const cooling = Math.min(6, Math.floor((252 - node.pods) / 4));
  const cells = Array.from({ length: 256 }, (_, i) =>
    i === 0 || i === 255 ? "x" : i === 1 ? "g" : i < node.pods + 2 ? "a" : i < node.pods + 2 + cooling ? "c" : ".",
  ).join("");
  return {
    ...stateOf(node),
    pods: { ...head, kind: "pods", pods, omitted: 0 },
    leases: {
      ...head,
      kind: "leases",
      omitted: 0,
      leases: pods.map((pod, i) => ({
        network: "pods",
        address: `${addressOf(node.number, i)}/24`,
        state: "allocated",
        containerId: pod.containerId,
        ifname: "eth0",
        podNamespace: pod.podNamespace ?? "",
        podName: pod.podName ?? "",
        rangeSet: 0,
        generation: i + 1,
        allocatedAt: at(i % 90),
      })),
    },
    history: {
      ...head,
      kind: "history",
      omitted: 0,
      sinceMs: generatedAtMs - 86_400_000,
      // Who has each address now, and who had it before.
      history: pods.flatMap((pod, i) => [
        heldBy(pod, addressOf(node.number, i), { generation: 1000 + i, fromMs: generatedAtMs - (i % 90) * 60_000 }),
        heldBy(
          { ...pod, podName: `${apps[(i + 3) % apps.length] ?? "web"}-${node.number}-old-${i}` },
          addressOf(node.number, i),
          {
            generation: i + 1,
            fromMs: generatedAtMs - 43_200_000,
            untilMs: generatedAtMs - ((i % 90) + 5) * 60_000,
          },
        ),
      ]),
    },
    addresses: {
      ...head,
      kind: "addresses",
      omitted: 0,
      pools: [
        {
          network: "pods",
          range: `10.20.${node.number}.0-10.20.${node.number}.255`,
          gateways: [`10.20.${node.number}.1`],
          total: "253",
          allocated: node.pods,
          releasing: 0,
          cooling,
          excluded: "3",
          free: String(253 - node.pods - cooling),
          strips: [{ first: `10.20.${node.number}.0`, last: `10.20.${node.number}.255`, addressesPerCell: "1", cells }],
        },
      ],
    },
    flows: {
      ...head,
      kind: "flows",
      dataPath: "Open vSwitch, bridge br-int",
      tables: tablesOf(node),
      flows: [],
      omitted: 0,
    },
    peers: {
      ...head,
      kind: "peers",
      registry: "the API server",
      probing: "each every 60 s",
      omitted: 0,
      peers: all.map(({ name, number }) => ({
        name,
        self: name === node.name,
        state: "ready",
        addresses: [`192.0.2.${number}`],
        subnets: [`10.20.${number}.0/24`],
        ...(name === node.name ? {} : { tunnelPort: 2, probes: probesOf(node.number, number) }),
      })),
    },
    services: {
      ...head,
      kind: "services",
      balanced: true,
      omitted: 0,
      services: [],
    },
    policies: {
      ...head,
      kind: "policies",
      enforced: true,
      summary: "2 policies isolate pods of this node",
      differences: [],
      omitted: 0,
      pods: pods.slice(0, 4).map((pod) => ({
        network: pod.network,
        containerId: pod.containerId,
        ifname: pod.ifname,
        podNamespace: pod.podNamespace ?? "",
        podName: pod.podName ?? "",
        directions: ["ingress"],
        policies: [`${pod.podNamespace ?? ""}/only-from-web`],
      })),
    },
  };
}

/** What a node says of itself. */
function stateOf({ name, number }: GeneratedNode): Pick<Documents, "node" | "findings" | "calls"> {
  const head = { version: 1, node: name } as const;
  return {
    node: {
      ...head,
      kind: "node",
      agentVersion: "0.1.0",
      pid: 1000 + number,
      startedAtMs: generatedAtMs - 7_200_000,
      state: "ready",
      system: "linux",
      dataPath: "ovs",
      networks: ["pods"],
      logLevel: "info",
      callsInFlight: 0,
      departing: 0,
      cluster: "one of the nodes that the API server knows",
      policies: "2 policies isolate pods of this node",
      services: "",
      problems: [],
      registryTroubles: [],
      configuration: [],
      shortcomings: [],
      refusals: [],
      policyDifferences: [],
      serviceDifferences: [],
      servicesFault: "",
    },
    findings: { ...head, kind: "findings", leases: 0, interfaces: 0, findings: [], omitted: 0 },
    calls: {
      ...head,
      kind: "calls",
      omitted: 0,
      calls: Array.from({ length: 12 }, (_, i) => ({
        verb: i % 4 === 3 ? "DEL" : "ADD",
        network: "pods",
        containerId: `call-${number}-${i}`,
        ifname: "eth0",
        podNamespace: "shop",
        podName: `${apps[i % apps.length] ?? "web"}-${number}-${i}`,
        beganAtMs: generatedAtMs - i * 61_000 - number * 1000,
        tookMicros: 2_400 + ((i * 977 + number * 131) % 5_000),
        code: 0,
        phases: [
          { phase: "queued", tookMicros: 90 },
          { phase: "IPAM", tookMicros: 800 },
          { phase: "interface", tookMicros: 900 },
          { phase: "flows", tookMicros: 500 },
        ],
      })),
    },
  };
}
