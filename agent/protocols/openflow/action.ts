import type { Ip } from "../../../shared/net/ip.ts";
import { Port, wholePacket } from "./constants.ts";
import { type Bits, type Field, type FieldName, fieldOf } from "./fields.ts";
import type { Learn } from "./learn.ts";
import { InvalidFlow } from "./openflow-error.ts";
import { type FieldValue, hex, valueFor } from "./values.ts";

/** `bits("reg0", 0, 15)`: from the lowest to the highest of them, as ovs-ofctl writes `NXM_NX_REG0[0..15]`. */
export function bits(name: FieldName, from: number, to: number = from): Bits {
  const field = fieldOf(name);
  if (!(Number.isInteger(from) && Number.isInteger(to)) || from < 0 || to < from || to >= field.bits) {
    throw new InvalidFlow(`bits of ${name}`, `${from} to ${to} are given, wanted some of 0 to ${field.bits - 1}`);
  }
  return { field, from, count: to - from + 1 };
}

/** All bits of a field. */
export function whole(name: FieldName): Bits {
  const field = fieldOf(name);
  return { field, from: 0, count: field.bits };
}

/** To the controller, with what it needs to know the packet again (nicira-ext.h, NXAST_CONTROLLER2). */
export interface Controller {
  readonly t: "controller";
  /** Bytes of the packet that are sent; 65535 all. */
  readonly maxLength: number;
  readonly controllerId: number;
  /** OFPR_*: 1 is "action". */
  readonly reason: number;
  /** Comes back with the packet. */
  readonly userData: Uint8Array;
  /** The packet waits until the controller resumes it. */
  readonly pause: boolean;
  readonly meter: number | undefined;
}

/** Translation of addresses of a connection (nicira-ext.h, NXAST_NAT). */
export interface Nat {
  /** `existing`: as the connection has it, and nothing new. */
  readonly side: "src" | "dst" | "existing";
  readonly from?: Ip;
  /** The last address of a range; absent: `from` alone. */
  readonly to?: Ip;
  /** The lowest port, and the highest where it is a range. */
  readonly port?: number;
  readonly lastPort?: number;
  readonly persistent?: boolean;
  readonly choice?: "hash" | "random";
}

/** The connection tracker (nicira-ext.h, NXAST_CT). */
export interface Connection {
  readonly t: "ct";
  readonly commit: boolean;
  /** Takes the place of an entry in the other direction. */
  readonly force: boolean;
  /** The zone, or the bits that hold it; 0 is the default zone. */
  readonly zone: number | Bits;
  /** Where the packet goes on, tracked; absent: what follows sees it untracked. */
  readonly table: number | undefined;
  /** The port of a protocol with an assistant (21 for FTP), 0 none. */
  readonly alg: number;
  readonly nat: Nat | undefined;
  /** Sets ct_mark and ct_label of what is committed: set-field and move. */
  readonly exec: readonly Action[];
}

/** What is done to a packet. */
export type Action =
  | { readonly t: "output"; readonly port: number; readonly maxLength: number }
  /** To the port whose number a field holds (NXAST_OUTPUT_REG). */
  | { readonly t: "output-field"; readonly source: Bits; readonly maxLength: number }
  | { readonly t: "group"; readonly group: number }
  | { readonly t: "meter"; readonly meter: number }
  | { readonly t: "set-field"; readonly field: Field; readonly value: bigint; readonly mask: bigint }
  | { readonly t: "move"; readonly source: Bits; readonly destination: Bits }
  /** `port`: as if it had come in there; `table` undefined: the same table again; `tracked`: with the original tuple. */
  | {
      readonly t: "resubmit";
      readonly port: number | undefined;
      readonly table: number | undefined;
      readonly tracked: boolean;
    }
  | { readonly t: "push-vlan"; readonly type: number }
  | { readonly t: "pop-vlan" }
  | { readonly t: "dec-ttl" }
  | { readonly t: "ct-clear" }
  /** Part `clause` of `clauses`, counted from 1, of the conjunctive match `id` (ovs-actions(7)). */
  | { readonly t: "conjunction"; readonly id: number; readonly clause: number; readonly clauses: number }
  /** Does nothing; a place to keep bytes. */
  | { readonly t: "note"; readonly bytes: Uint8Array }
  | Controller
  | Connection
  | Learn
  /** One that this client has no name for, whole and as it came. */
  | { readonly t: "unknown"; readonly bytes: Uint8Array };

export type ActionOf<T extends Action["t"]> = Extract<Action, { t: T }>;

/** @throws {InvalidFlow} */
function within(what: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new InvalidFlow("an action", `its ${what} is ${value}, wanted ${least} to ${most}`);
}

const portIn = (port: number): number => within("port", port, 0, Port.LOCAL);

/** To a port by its number, or one of `Port`. @throws {InvalidFlow} */
export const output = (port: number, maxLength = 0): Action => ({ t: "output", port: portIn(port), maxLength });

export const outputTo = (source: Bits): Action => {
  if (source.count > 32) {
    throw new InvalidFlow("an output", `${source.count} bits of ${source.field.name} are given, wanted 32 at the most`);
  }
  return { t: "output-field", source, maxLength: wholePacket };
};
export const toGroup = (group: number): Action => ({ t: "group", group: within("group", group, 0, 0xfffffeff) });
export const throughMeter = (meter: number): Action => ({ t: "meter", meter: within("meter", meter, 1, 0xffff0000) });

/** Sets a field, or those of its bits that `mask` has. @throws {InvalidFlow} */
export function setField(name: FieldName, value: FieldValue, mask?: FieldValue): Action {
  const field = fieldOf(name);
  const bitsSet = mask === undefined ? field.ones : valueFor(field, mask);
  return setting(field, valueFor(field, value), bitsSet);
}

/** Sets some consecutive bits. @throws {InvalidFlow} */
export function load({ field, from, count }: Bits, value: number | bigint): Action {
  const number = BigInt(value);
  if (number < 0n || number >> BigInt(count) !== 0n) {
    throw new InvalidFlow(`a load to ${field.name}`, `${hex(number)} is given, wanted ${count} bits`);
  }
  return setting(field, number << BigInt(from), ((1n << BigInt(count)) - 1n) << BigInt(from));
}

function setting(field: Field, value: bigint, mask: bigint): Action {
  const what = `an action that sets ${field.name}`;
  if (!field.writable) throw new InvalidFlow(what, "the field is there to be read only");
  if (mask === 0n) throw new InvalidFlow(what, "the mask is 0, wanted a bit at least");
  if (mask !== field.ones && !field.maskable) throw new InvalidFlow(what, "a part is set, wanted the whole field");
  if ((value & ~mask) !== 0n) {
    throw new InvalidFlow(what, `the value ${hex(value)} has bits that the mask ${hex(mask)} has not`);
  }
  return { t: "set-field", field, value, mask };
}

/** Copies bits from one field to another. @throws {InvalidFlow} */
export function move(source: Bits, destination: Bits): Action {
  const what = `a move from ${source.field.name} to ${destination.field.name}`;
  if (!destination.field.writable) throw new InvalidFlow(what, "the second is there to be read only");
  if (source.count !== destination.count) {
    throw new InvalidFlow(what, `${source.count} bits are to go where ${destination.count} are, wanted as many`);
  }
  return { t: "move", source, destination };
}

/** On to a table, or to the same one as if the packet had come in by `port`, of 16 bits or one of `Port`. @throws {InvalidFlow} */
export function resubmit(table: number | undefined, port?: number): Action {
  if (table !== undefined) within("table", table, 0, 254);
  if (port !== undefined && port < Port.MAX) within("port", port, 0, 0xfeff);
  return { t: "resubmit", port: port === undefined ? undefined : portIn(port), table, tracked: false };
}

/** What follows sees the packet as one that was not looked up in connection tracking. */
export const ctClear: Action = { t: "ct-clear" };

/**
 * A copy to the controller, as far as the meter lets it pass.
 * @param maxLength bytes of the packet that it gets
 * @param meter absent: every packet passes
 */
export const toController = (maxLength: number, meter?: number): Action => ({
  t: "controller",
  ...{ maxLength: within("length", maxLength, 0, wholePacket), controllerId: 0, reason: reasonAction, pause: false },
  ...{ userData: new Uint8Array(0), meter: meter === undefined ? undefined : within("meter", meter, 1, 0xffff0000) },
});

/** OFPR_ACTION: because an action said so. */
export const reasonAction = 1;
