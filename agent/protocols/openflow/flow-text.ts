import { formatIp, type Ip } from "../../../shared/net/ip.ts";
import { type Action, type ActionOf, type Connection, type Controller, type Nat, reasonAction } from "./action.ts";
import { defaultPriority, FlowFlag, formatPort, Port, wholePacket } from "./constants.ts";
import type { Bits } from "./fields.ts";
import type { Flow, Instructions } from "./flow.ts";
import type { OpenFlowGroup, Selection } from "./group.ts";
import type { Learn, LearnSource, LearnSpec } from "./learn.ts";
import { matchText } from "./match-text.ts";
import { fieldText, hex } from "./values.ts";

/**
 * One flow on one line as `ovs-ofctl --no-stats --no-names dump-flows` prints it, without the space in front. It can be
 * given to `ovs-ofctl add-flow` as it is.
 */
export function flowText(flow: Flow): string {
  const flags = flow.flags.length === 0 ? "" : `${orderedFlags(flow)} `;
  const head = [
    flow.cookie === 0n ? "" : `cookie=${hex(flow.cookie)}, `,
    flow.table === 0 ? "" : `table=${flow.table}, `,
    flow.idleTimeout === 0 ? "" : `idle_timeout=${flow.idleTimeout}, `,
    flow.hardTimeout === 0 ? "" : `hard_timeout=${flow.hardTimeout}, `,
    flags,
    flow.importance === 0 ? "" : `importance=${flow.importance}, `,
  ].join("");
  const priority = flow.priority === defaultPriority ? "" : `priority=${flow.priority}`;
  const match = [priority, matchText(flow.match)].filter((part) => part !== "").join(",");
  return `${head}${match === "" ? "" : `${match} `}actions=${instructionsText(flow)}`;
}

function orderedFlags(flow: Flow): string {
  return (Object.keys(FlowFlag) as FlowFlag[]).filter((flag) => flow.flags.includes(flag)).join(" ");
}

/** Of the metadata, where all of it is written. */
const allBits = 0xffff_ffff_ffff_ffffn;

export function instructionsText(of: Instructions): string {
  const { metadata } = of;
  const parts = [
    of.actions.length === 0 ? undefined : actionsText(of.actions),
    of.clearActions ? "clear_actions" : undefined,
    of.writeActions.length === 0 ? undefined : `write_actions(${actionsText(of.writeActions)})`,
    metadata === undefined
      ? undefined
      : `write_metadata:${hex(metadata.value)}${metadata.mask === allBits ? "" : `/${hex(metadata.mask)}`}`,
    of.gotoTable === undefined ? undefined : `goto_table:${of.gotoTable}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? actionsText([]) : parts.join(",");
}

/** One group on one line as `ovs-ofctl -O OpenFlow15 dump-groups` prints it, without the space in front. */
export function groupText({ id, type, buckets, selection }: OpenFlowGroup): string {
  const parts = [`group_id=${id}`, `type=${type}`, ...(selection === undefined ? [] : selectionText(selection))];
  for (const bucket of buckets) {
    parts.push(`bucket=bucket_id:${bucket.id}`);
    if (bucket.weight !== (type === "select" ? 1 : 0)) parts.push(`weight:${bucket.weight}`);
    parts.push(`actions=${actionsText(bucket.actions)}`);
  }
  return parts.join(",");
}

function selectionText({ method, parameter, fields }: Selection): string[] {
  const names = fields.map(({ name }) => name);
  return [
    `selection_method=${method}`,
    ...(parameter === 0n ? [] : [`selection_method_param=${parameter}`]),
    ...(names.length === 0 ? [] : names.length === 1 ? [`fields=${names[0]}`] : [`fields(${names.join(",")})`]),
  ];
}

/** The actions in ovs-ofctl's words, `drop` for none (ovs-actions(7); ofpacts_format of Open vSwitch). */
export function actionsText(actions: readonly Action[]): string {
  return actions.length === 0 ? "drop" : actions.map(actionText).join(",");
}

function actionText(action: Action): string {
  switch (action.t) {
    case "output":
      return outputText(action);
    case "output-field":
      return `output:${bitsText(action.source)}`;
    case "group":
      return `group:${action.group}`;
    case "meter":
      return `meter:${action.meter}`;
    case "set-field":
      return `set_field:${fieldText(action.field, action.value, action.mask)}->${action.field.name}`;
    case "move":
      return `move:${bitsText(action.source)}->${bitsText(action.destination)}`;
    case "resubmit":
      return resubmitText(action);
    case "push-vlan":
      return `push_vlan:0x${action.type.toString(16).padStart(4, "0")}`;
    case "pop-vlan":
      return "pop_vlan";
    case "dec-ttl":
      return "dec_ttl";
    case "ct-clear":
      return "ct_clear";
    case "conjunction":
      return `conjunction(${action.id},${action.clause}/${action.clauses})`;
    case "note":
      return `note:${dotted(paddedNote(action.bytes))}`;
    case "controller":
      return controllerText(action);
    case "ct":
      return connectionText(action);
    case "learn":
      return learnText(action);
    case "unknown":
      return `unknown(${dotted(action.bytes)})`;
  }
}

/** `NXM_NX_REG0[0..15]`, `NXM_NX_REG0[4]`, `NXM_NX_REG1[]`. */
function bitsText({ field, from, count }: Bits): string {
  if (from === 0 && count === field.bits) return `${field.nxmName}[]`;
  return `${field.nxmName}[${count === 1 ? from : `${from}..${from + count - 1}`}]`;
}

function outputText({ port, maxLength }: ActionOf<"output">): string {
  if (port === Port.CONTROLLER) return `CONTROLLER:${maxLength}`;
  return port < Port.MAX ? `output:${port}` : formatPort(port);
}

function resubmitText({ port, table, tracked }: ActionOf<"resubmit">): string {
  if (port !== undefined && table === undefined) return `resubmit:${formatPort(port)}`;
  return `resubmit(${port === undefined ? "" : formatPort(port)},${table ?? ""}${tracked ? ",ct" : ""})`;
}

/** OFPR_* as ovs-ofctl names them. */
const reasons = ["no_match", "action", "invalid_ttl", "action_set", "group", "packet_out"];

function controllerText(action: Controller): string {
  const { reason, maxLength, controllerId, userData, pause, meter } = action;
  if (reason === reasonAction && !controllerId && userData.length === 0 && !pause && meter === undefined) {
    return `CONTROLLER:${maxLength}`;
  }
  const parts = [
    reason === reasonAction ? undefined : `reason=${reasons[reason] ?? reason}`,
    maxLength === wholePacket ? undefined : `max_len=${maxLength}`,
    controllerId === 0 ? undefined : `id=${controllerId}`,
    userData.length === 0 ? undefined : `userdata=${dotted(userData)}`,
    pause ? "pause" : undefined,
    meter === undefined ? undefined : `meter_id=${meter}`,
  ];
  return `controller(${parts.filter((part) => part !== undefined).join(",")})`;
}

function connectionText({ commit, force, table, zone, nat, exec, alg }: Connection): string {
  const zoneText = typeof zone === "object" ? bitsText(zone) : zone === 0 ? undefined : String(zone);
  const parts = [
    commit ? "commit" : undefined,
    force ? "force" : undefined,
    table === undefined ? undefined : `table=${table}`,
    zoneText === undefined ? undefined : `zone=${zoneText}`,
    nat === undefined ? undefined : natText(nat),
    exec.length === 0 ? undefined : `exec(${actionsText(exec)})`,
    alg === 0 ? undefined : `alg=${algorithms.get(alg) ?? alg}`,
  ];
  return `ct(${parts.filter((part) => part !== undefined).join(",")})`;
}

const algorithms = new Map([
  [21, "ftp"],
  [69, "tftp"],
]);

function natText({ side, from, to, port, lastPort, persistent, choice }: Nat): string {
  if (side === "existing") return "nat";
  if (from === undefined) return `nat(${side})`;
  const address = (ip: Ip): string => (ip.family === 6 && port !== undefined ? `[${formatIp(ip)}]` : formatIp(ip));
  const addresses = to === undefined || to.value === from.value ? "" : `-${address(to)}`;
  const ports =
    port === undefined ? "" : `:${port}${lastPort === undefined || lastPort === port ? "" : `-${lastPort}`}`;
  const flags = `${persistent ? ",persistent" : ""}${choice ? `,${choice}` : ""}`;
  return `nat(${side}=${address(from)}${addresses}${ports}${flags})`;
}

function learnText(learned: Learn): string {
  const parts = [
    `table=${learned.table}`,
    learned.idleTimeout === 0 ? undefined : `idle_timeout=${learned.idleTimeout}`,
    learned.hardTimeout === 0 ? undefined : `hard_timeout=${learned.hardTimeout}`,
    learned.finIdleTimeout === 0 ? undefined : `fin_idle_timeout=${learned.finIdleTimeout}`,
    learned.finHardTimeout === 0 ? undefined : `fin_hard_timeout=${learned.finHardTimeout}`,
    learned.priority === 0x8000 ? undefined : `priority=${learned.priority}`,
    learned.sendFlowRemoved ? "send_flow_rem" : undefined,
    learned.deleteLearned ? "delete_learned" : undefined,
    learned.cookie === 0n ? undefined : `cookie=${hex(learned.cookie)}`,
    learned.limit === 0 ? undefined : `limit=${learned.limit}`,
    ...learned.specs.map(specText),
  ];
  return `learn(${parts.filter((part) => part !== undefined).join(",")})`;
}

function specText(spec: LearnSpec): string {
  if (spec.t === "output") return `output:${bitsText(spec.source)}`;
  const { source, destination } = spec;
  const { field } = destination;
  if (spec.t === "load") return `load:${sourceText(source)}->${bitsText(destination)}`;
  if (!("number" in source)) {
    const sameBits = source.field === field && source.from === destination.from;
    return bitsText(destination) + (sameBits ? "" : `=${bitsText(source)}`);
  }
  const isWhole = destination.from === 0 && destination.count === field.bits;
  if (isWhole) return `${field.name}=${fieldText(field, source.number, field.ones)}`;
  return `${bitsText(destination)}=${hex(source.number)}`;
}

const sourceText = (source: LearnSource): string => ("number" in source ? hex(source.number) : bitsText(source));

const dotted = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(".");

/** A note fills its action, as it will be read back. */
function paddedNote(bytes: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.ceil((bytes.length + 10) / 8) * 8 - 10);
  padded.set(bytes);
  return padded;
}
