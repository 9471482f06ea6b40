import type {
  PlainCluster,
  PlainEnd,
  PlainPeer,
  PlainPod,
  PlainPolicy,
  PlainPort,
  PlainRule,
  PlainTraffic,
} from "../policies/oracle.ts";

type Random = (bound: number) => number;
type PlainSelector = PlainPolicy["spec"]["podSelector"];

/** Few names, so that what is drawn meets. */
const namespaces = ["red", "green", "blue"];
export const nodeNames = ["n0", "n1", "n2"];
const keys = ["app", "tier", "constructor"];
const values = ["a", "b", ""];

const frequentSelectors: readonly PlainSelector[] = [
  {},
  { matchLabels: { app: "a" } },
  { matchExpressions: [{ key: "app", operator: "In", values: ["b", "a"] }] },
  { matchExpressions: [{ key: "tier", operator: "DoesNotExist" }] },
];

/** Objects of the API drawn at random: valid ones, as the API server has them after it has filled in what was left out. */
export class RandomObjects {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  one<T>(of: readonly T[]): T {
    return of[this.#random(of.length)] as T;
  }

  chance(percent: number): boolean {
    return this.#random(100) < percent;
  }

  list<T>(most: number, make: (i: number) => T): T[] {
    return Array.from({ length: this.#random(most + 1) }, (_, i) => make(i));
  }

  labels(): Record<string, string> {
    const labels: Record<string, string> = {};
    for (const key of keys) if (this.chance(50)) labels[key] = this.one(values);
    return labels;
  }

  namespace(): string {
    return this.one(namespaces);
  }

  /** Some namespaces have no Namespace object yet. */
  namespaceLabels(): Map<string, Record<string, string>> {
    const known = namespaces.filter(() => this.chance(90));
    return new Map(known.map((name) => [name, { ...this.labels(), "kubernetes.io/metadata.name": name }]));
  }

  /** @param i tells its addresses, and with `name` who it is */
  pod(i: number, namespace: string, name = `pod-${i}`): PlainPod {
    const isScheduled = this.chance(92);
    const hostNetwork = this.chance(8);
    const ips = !isScheduled || this.chance(8) ? [] : [{ ip: `10.0.${i >> 2}.${i & 3}` }];
    if (ips.length > 0 && this.chance(40)) ips.push({ ip: `fd00::${i.toString(16)}` });
    const web = { name: "web", containerPort: this.one([80, 8080]) };
    const dns = { name: "dns", containerPort: 53, protocol: "UDP" };
    return {
      metadata: { namespace, name, uid: `uid-${namespace}-${name}-${this.#random(2)}`, labels: this.labels() },
      spec: {
        ...(isScheduled ? { nodeName: this.one(nodeNames) } : {}),
        ...(hostNetwork ? { hostNetwork } : {}),
        containers: [
          { ports: this.chance(80) ? [web] : [] },
          { ports: [...this.list(1, () => dns), { containerPort: 9 }] },
        ],
      },
      status: {
        phase: this.one(["Pending", "Running", "Running", "Running", "Running", "Succeeded", "Failed"]),
        podIPs: ips,
      },
    };
  }

  policy(i: number, namespace = this.namespace()): PlainPolicy {
    return {
      metadata: { namespace, name: `policy-${i}`, uid: `uid-${namespace}-${i}` },
      spec: {
        podSelector: this.selector(),
        policyTypes: this.one([["Ingress"], ["Egress"], ["Ingress", "Egress"], ["Egress", "Ingress"]]),
        ...(this.chance(80) ? { ingress: this.list(3, () => this.rule("from")) } : {}),
        ...(this.chance(80) ? { egress: this.list(3, () => this.rule("to")) } : {}),
      },
    };
  }

  rule(peers: "from" | "to"): PlainRule {
    return {
      ...(this.chance(80) ? { [peers]: this.list(2, () => this.peer()) } : {}),
      ...(this.chance(60) ? { ports: this.list(2, () => this.port()) } : {}),
    };
  }

  peer(): PlainPeer {
    if (this.chance(25)) return { ipBlock: this.block() };
    const both = this.chance(30);
    return {
      ...(both || this.chance(50) ? { podSelector: this.selector() } : { namespaceSelector: this.selector() }),
      ...(both ? { namespaceSelector: this.selector() } : {}),
    };
  }

  /** Also with host bits, and with an exception that leaves nothing. */
  block(): { cidr: string; except?: string[] } {
    if (this.chance(20)) return { cidr: `fd00::${this.one(["", "4", "8"])}/${this.one([0, 64, 126, 128])}` };
    const cidr = (): string => `10.0.${this.#random(4)}.${this.#random(4)}/${this.one([8, 23, 24, 30, 31, 32])}`;
    if (this.chance(20)) return { cidr: "0.0.0.0/0", except: this.list(2, cidr) };
    return this.chance(50) ? { cidr: cidr() } : { cidr: cidr(), except: this.list(2, cidr) };
  }

  port(): PlainPort {
    const protocol = this.one([{}, { protocol: "TCP" }, { protocol: "UDP" }, { protocol: "SCTP" }]);
    switch (this.#random(4)) {
      case 0:
        return protocol;
      case 1:
        return this.chance(60) ? { port: "web" } : { ...protocol, port: this.one(["web", "dns", "nobodys"]) };
      case 2:
        return { ...protocol, port: this.one([53, 79, 80]), endPort: this.one([80, 81, 8080]) };
      default:
        return { ...protocol, port: this.one([53, 80, 8080]) };
    }
  }

  selector(): PlainSelector {
    // The same ones again and again, so that policies share groups, and groups their namespaces.
    if (this.chance(50)) return this.one(frequentSelectors);
    return {
      ...(this.chance(50) ? { matchLabels: { [this.one(keys)]: this.one(values) } } : {}),
      ...(this.chance(60) ? { matchExpressions: this.list(2, () => this.#expression()) } : {}),
    };
  }

  #expression(): NonNullable<PlainSelector["matchExpressions"]>[number] {
    const [key, operator] = [this.one(keys), this.one(["In", "NotIn", "Exists", "DoesNotExist"] as const)];
    if (operator === "Exists" || operator === "DoesNotExist") return { key, operator };
    return { key, operator, values: this.one([["a"], ["b", "a"], [""], ["b"]]) };
  }
}

export interface DrawnCluster extends PlainCluster {
  readonly pods: readonly PlainPod[];
}

export function drawCluster(random: Random): DrawnCluster {
  const objects = new RandomObjects(random);
  const pods = Array.from({ length: 12 }, (_, i) => objects.pod(i, objects.namespace()));
  return { namespaces: objects.namespaceLabels(), policies: objects.list(12, (i) => objects.policy(i)), pods };
}

export interface DrawnQuestion {
  readonly source: PlainEnd;
  readonly destination: PlainEnd;
  readonly traffic: PlainTraffic;
}

/** Between pods with an address and the world. */
export function drawQuestion({ pods }: DrawnCluster, random: Random): DrawnQuestion {
  const objects = new RandomObjects(random);
  const end = (): PlainEnd => {
    const pod = objects.one(pods);
    const ips = pod.status.podIPs;
    if (ips.length > 0 && objects.chance(92)) return { pod, ip: objects.one(ips).ip };
    return { ip: objects.one(["1.2.3.4", "10.0.3.200", "2001:db8::1"]) };
  };
  const protocol = objects.one(["TCP", "TCP", "TCP", "UDP", "SCTP", "ICMP"]);
  return {
    source: end(),
    destination: end(),
    traffic: { protocol, port: objects.one([53, 79, 80, 80, 81, 8080, 8080]) },
  };
}
