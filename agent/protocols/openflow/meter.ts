import { MessageType, Meter, MultipartType } from "./constants.ts";
import { InvalidFlow } from "./openflow-error.ts";
import type { MultipartRequest, Request } from "./request.ts";
import type { WireReader } from "./wire-reader.ts";

/** Drops what exceeds a rate. */
export interface OpenFlowMeter {
  readonly id: number;
  /** Packets or kilobits per second. */
  readonly unit: "pktps" | "kbps";
  readonly rate: number;
  /** In packets or kilobits; absent: the switch's own. */
  readonly burst: number | undefined;
}

/** @throws {InvalidFlow} */
export function meter(given: Pick<OpenFlowMeter, "id" | "unit" | "rate"> & { readonly burst?: number }): OpenFlowMeter {
  const { id, rate, burst } = given;
  const what = `meter ${id}`;
  if (!Number.isInteger(id) || id < 1 || id > 0xffff0000) {
    throw new InvalidFlow(what, "its number is not from 1 to 4294901760");
  }
  for (const value of [rate, burst ?? 1]) {
    if (!Number.isInteger(value) || value < 1 || value > 0xffffffff) {
      throw new InvalidFlow(what, `its rate or burst is ${value}, wanted 1 to 4294967295`);
    }
  }
  return { id, unit: given.unit, rate, burst };
}

const MeterCommand = { add: 0, modify: 1, delete: 2 } as const;
const flag = { kbps: 1, pktps: 2, burst: 4, stats: 8 } as const;
const dropBand = 1;

export const addMeter = (of: OpenFlowMeter): Request => meterMod("add", of);
export const modifyMeter = (of: OpenFlowMeter): Request => meterMod("modify", of);

/** `struct ofp_meter_mod` (OpenFlow 1.5.1, 7.3.4.5). */
export function meterMod(command: keyof typeof MeterCommand, of: OpenFlowMeter | { readonly id: number }): Request {
  return {
    action: `${command} meter ${of.id === Meter.ALL ? "all" : of.id}`,
    type: MessageType.METER_MOD,
    body: (writer) => {
      writer.u16(MeterCommand[command]);
      if (!("rate" in of)) {
        writer.u16(0).u32(of.id);
        return;
      }
      writer.u16(flag[of.unit] | flag.stats | (of.burst === undefined ? 0 : flag.burst)).u32(of.id);
      writer
        .u16(dropBand)
        .u16(16)
        .u32(of.rate)
        .u32(of.burst ?? 0)
        .zeros(4);
    },
  };
}

/** OFPMP_METER_DESC (7.3.5.14). Meters with other bands than one that drops are left out. */
export function metersRequest(): MultipartRequest<OpenFlowMeter | undefined> {
  return {
    action: "list the meters",
    type: MultipartType.METER_DESC,
    body: (writer) => writer.u32(Meter.ALL).zeros(4),
    entry: readMeter,
  };
}

function readMeter(reader: WireReader): OpenFlowMeter | undefined {
  const length = reader.u16();
  if (length < 8) throw reader.malformed(`a meter says ${length} bytes, wanted 8 at least`);
  const entry = reader.part(length - 2, "a meter");
  const flags = entry.u16();
  const id = entry.u32();
  if (entry.left !== 16 || entry.u16() !== dropBand) return undefined;
  const rate = entry.skip(2).u32();
  const burst = entry.u32();
  const unit = flags & flag.pktps ? "pktps" : "kbps";
  return { id, unit, rate, burst: flags & flag.burst ? burst : undefined };
}

/** OFPMP_METER_FEATURES (7.3.5.15): how many meters the switch can have; 0 where its data path has none. */
export function maxMetersRequest(): MultipartRequest<number> {
  return {
    action: "ask how many meters there can be",
    type: MultipartType.METER_FEATURES,
    body: () => undefined,
    entry: (reader) => {
      const max = reader.u32();
      reader.rest();
      return max;
    },
  };
}
