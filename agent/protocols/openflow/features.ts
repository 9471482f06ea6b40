import type { WireReader } from "./wire-reader.ts";

/** OFPT_FEATURES_REPLY (OpenFlow 1.5.1, 7.3.1). */
export interface Features {
  /** 64 bits that name the bridge, 48 of them usually its MAC. */
  readonly datapathId: bigint;
  readonly tables: number;
  readonly capabilities: number;
}

/** @throws {MalformedMessage} */
export function readFeatures(reader: WireReader): Features {
  const datapathId = reader.u64();
  const tables = reader.skip(4).u8();
  return { datapathId, tables, capabilities: reader.skip(3).u32() };
}
