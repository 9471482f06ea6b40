import type { TraceAction, TraceComponent, TraceStep } from "../../../../shared/documents/mod.ts";
import { formatIp, type Ip, sameIp } from "../../../../shared/net/ip.ts";
import type { Direction } from "../../../../shared/policy/mod.ts";
import type { PacketEnds } from "../../packet-ends.ts";
import { Destination, registers } from "../pipeline/registers.ts";
import { type TableName, tables } from "../pipeline/tables.ts";
import { dropText } from "./drop-text.ts";
import { askedFor, type Observation, tunnelAddress } from "./observation.ts";

/** What numbers and addresses stand for on this node. */
export interface TraceNames {
  /** What a port of the switch is. */
  port(ofport: number): NamedPort;
  /** The rule of a policy that has this number. */
  rule(number: number): { readonly policy: string; readonly rule: string } | undefined;
  /** Policies that isolate the pod of an address, or of a port. */
  isolating(direction: Direction, at: { readonly ip: Ip } | { readonly ofport: number }): readonly string[];
  /** The other node that has pods with this address. */
  nodeOf(ip: Ip): string | undefined;
  /** The node at the other end of a tunnel. */
  nodeAt(address: Ip): string | undefined;
  /** Whether the address is the node's own. */
  isOwn(ip: Ip): boolean;
  /** The node's kernel routes between pods too, as another plugin has said. */
  readonly isRoutedOnly: boolean;
}

export interface NamedPort {
  readonly name: string;
  readonly kind: "pod" | "tunnel" | "gateway" | "uplink" | "other";
  /** namespace/name. */
  readonly pod?: string;
}

/** The flow's table where something was decided, and the packet there. */
interface Told {
  readonly seen: Observation;
  readonly table: TableName;
  readonly component: TraceComponent;
  readonly action: TraceAction;
  readonly text: string;
}

type More = Omit<Partial<TraceStep>, keyof Told | "atMs">;

const stepOf = ({ seen, ...told }: Told, more: More = {}): TraceStep => ({
  ...told,
  atMs: seen.atMs,
  ttl: seen.ttl,
  ...more,
});

/**
 * What the node has decided about a packet, from the tables that have told of it.
 * @param seen in the order in which they came, each table once
 * @param ended nothing more is to come, so that the last table has dropped it unless it is Output
 */
export function stepsOf(seen: readonly Observation[], ended: boolean, names: TraceNames): readonly TraceStep[] {
  const [first] = seen;
  const last = seen.at(-1);
  if (first === undefined || last === undefined) return [];
  const steps: TraceStep[] = [
    ...entryStep(first, last, names),
    ...balancingStep(seen),
    ...policyStep("egress", seen, names),
  ];
  steps.push(...routingStep(seen, names), ...sourceStep(seen), ...policyStep("ingress", seen, names));
  if (last.table === tables.Output && last.value(registers.output) === 1) steps.push(...outputStep(last, names));
  else if (ended) steps.push(dropStep(last, names));
  return steps;
}

const at = (seen: readonly Observation[], table: TableName): Observation | undefined =>
  seen.find((one) => one.table === tables[table]);
/** As a table has left it: the next one that tells of it. */
const behind = (seen: readonly Observation[], table: TableName): Observation | undefined =>
  seen.find((one) => one.table > tables[table]);

/** By which port it came, once it has passed the guards. */
function entryStep(first: Observation, last: Observation, names: TraceNames): readonly TraceStep[] {
  if (last.table <= tables.SpoofGuard) return [];
  const port = names.port(Number(first.field("in_port") ?? 0n));
  if (port.kind === "pod") {
    const whose = port.pod === undefined ? "" : ` of pod ${port.pod}`;
    const text = `port ${port.name}${whose} may send from ${formatIp(first.ends.source)}`;
    const told = { seen: first, table: "SpoofGuard", component: "spoofGuard", action: "forwarded", text } as const;
    return [stepOf(told, { port: port.name })];
  }
  const address = port.kind === "tunnel" ? tunnelAddress(first, "src") : undefined;
  const node = address === undefined ? names.nodeOf(first.ends.source) : names.nodeAt(address);
  const from = node === undefined ? "" : ` from node ${node}`;
  const by = {
    tunnel: `through the tunnel${from}${address === undefined ? "" : ` (${formatIp(address)})`}`,
    gateway: `by the node's kernel${from}`,
    uplink: `by the uplink${from}`,
  };
  const text = `it came ${port.kind === "other" ? `by port ${port.name}` : by[port.kind]}`;
  const told = { seen: first, table: "Classifier", component: "forwarding", action: "received", text } as const;
  return [stepOf(told, { port: port.name })];
}

function balancingStep(seen: readonly Observation[]): readonly TraceStep[] {
  const after = seen.find(({ table }) => table >= tables.EgressRule);
  if (after === undefined) return [];
  const before = seen.find(({ table }) => table < tables.EgressRule);
  const asked = before === undefined ? askedFor(after) : whom(before.ends);
  if (asked === undefined) return [];
  const now = whom(after.ends);
  if (sameIp(asked.ip, now.ip) && asked.port === now.port) return [];
  const text = `the service at ${addressText(asked)} is answered by ${addressText(now)}`;
  const told = { seen: after, table: "EndpointDNAT", component: "loadBalancing", action: "forwarded", text } as const;
  return [stepOf(told, { translatedDestination: addressText(now) })];
}

const policyTables = { egress: "EgressMetric", ingress: "IngressMetric" } as const;

function policyStep(direction: Direction, seen: readonly Observation[], names: TraceNames): readonly TraceStep[] {
  const table = policyTables[direction];
  const judged = at(seen, table);
  if (judged === undefined || judged.value(registers.refused) === 1) return [];
  const number = judged.value(direction === "egress" ? registers.egressRule : registers.ingressRule);
  const found = names.rule(number);
  const may = direction === "egress" ? "be sent" : "be received";
  const text =
    found === undefined
      ? `rule ${number} of a network policy lets it ${may}`
      : `network policy ${found.policy} lets it ${may}: ${found.rule}`;
  const told = { seen: judged, table, component: "policy", action: "forwarded", text } as const;
  return [stepOf(told, { direction, ...(found && { policies: [found.policy], rule: found.rule }) })];
}

function routingStep(seen: readonly Observation[], names: TraceNames): readonly TraceStep[] {
  const routed = at(seen, "L3Forwarding");
  const next = behind(seen, "L3Forwarding");
  if (routed === undefined || next === undefined) return [];
  const way = next.value(registers.destination);
  const tunnel = way === Destination.tunnel ? tunnelAddress(next, "dst") : undefined;
  const to = formatIp(next.ends.destination);
  const text =
    way === Destination.tunnel
      ? `${to} is behind the tunnel${tunnel === undefined ? "" : ` to ${nodeText(names.nodeAt(tunnel), tunnel)}`}`
      : way === Destination.gateway
        ? `${to} is behind the gateway, where the node's kernel routes`
        : way === Destination.uplink
          ? `${to} is behind the uplink`
          : `${to} is on this node`;
  const told = { seen: next, table: "L3Forwarding", component: "routing", action: "forwarded", text } as const;
  return [
    stepOf(told, {
      destinationMac: next.destinationMac,
      ...(tunnel === undefined ? {} : { tunnelDestination: formatIp(tunnel) }),
    }),
  ];
}

function sourceStep(seen: readonly Observation[]): readonly TraceStep[] {
  const [before, after] = [seen[0], behind(seen, "SNAT")];
  if (before === undefined || after === undefined || sameIp(before.ends.source, after.ends.source)) return [];
  const source = addressText({ ip: after.ends.source, port: after.ends.ports?.source ?? 0 });
  const text = `its source becomes ${source}, so that answers come back through this node`;
  const told = { seen: after, table: "SNAT", component: "snat", action: "forwarded", text } as const;
  return [stepOf(told, { translatedSource: source })];
}

/** Where it leaves the switch. */
function outputStep(seen: Observation, names: TraceNames): readonly TraceStep[] {
  const port = names.port(seen.value(registers.outputPort));
  const { destination } = seen.ends;
  const told = (action: TraceAction, text: string): Told => ({
    ...{ seen, table: "Output", component: "forwarding", action, text },
  });
  const of = { port: port.name };
  if (port.kind === "pod") {
    const pod = port.pod ?? `of port ${port.name}`;
    return [stepOf(told("delivered", `to pod ${pod} by port ${port.name}`), { ...of, pod })];
  }
  if (port.kind === "tunnel") {
    const address = tunnelAddress(seen, "dst");
    const to = address === undefined ? "" : ` to ${nodeText(names.nodeAt(address), address)}`;
    const tunnel =
      address === undefined ? {} : { tunnelDestination: formatIp(address), ...toNode(names.nodeAt(address)) };
    return [stepOf(told("forwarded", `sent through the tunnel${to}`), { ...of, ...tunnel })];
  }
  if (seen.value(registers.noEndpoint) === 1)
    return [
      stepOf({
        ...told("rejected", `the service at ${formatIp(destination)} has no endpoint: the node's kernel refuses it`),
        ...{ table: "EndpointDNAT", component: "loadBalancing" },
      }),
    ];
  const node = names.nodeOf(destination);
  const onward = { ...of, ...toNode(node) };
  if (port.kind === "uplink")
    return [stepOf(told("forwarded", `sent by the uplink to node ${node ?? "unknown"}`), onward)];
  const as = names.isRoutedOnly ? " as another plugin has said" : "";
  if (node !== undefined)
    return [stepOf(told("forwarded", `given to this node's kernel, which routes it to node ${node}${as}`), onward)];
  if (names.isOwn(destination)) return [stepOf(told("delivered", "to the node itself"), of)];
  if (names.isRoutedOnly) return [stepOf(told("forwarded", `given to this node's kernel, which routes${as}`), of)];
  return [stepOf(told("forwardedOutOfNetwork", "given to this node's kernel, which routes it out of the network"), of)];
}

function dropStep(last: Observation, names: TraceNames): TraceStep {
  const { table, component, direction, text } = dropText(last, names);
  const told = { seen: last, table, component, action: "dropped", text } as const;
  if (direction === undefined) return stepOf(told);
  const policies = names.isolating(
    direction,
    direction === "egress" ? { ip: last.ends.source } : { ofport: last.value(registers.outputPort) },
  );
  const by =
    policies.length === 0 ? "the pod's policies are not known yet" : `the pod is isolated by ${policies.join(", ")}`;
  return stepOf({ ...told, text: `${text} (${by})` }, { direction, policies: [...policies] });
}

const toNode = (name: string | undefined): { readonly toNode?: string } => (name === undefined ? {} : { toNode: name });

const nodeText = (name: string | undefined, address: Ip): string =>
  name === undefined ? formatIp(address) : `node ${name} (${formatIp(address)})`;

interface Place {
  readonly ip: Ip;
  readonly port: number;
}

const whom = ({ destination, ports }: PacketEnds): Place => ({ ip: destination, port: ports?.destination ?? 0 });

const addressText = ({ ip, port }: Place): string => {
  if (port === 0) return formatIp(ip);
  return ip.family === 4 ? `${formatIp(ip)}:${port}` : `[${formatIp(ip)}]:${port}`;
};
