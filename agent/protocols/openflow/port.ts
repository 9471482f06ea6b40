import { MultipartType, Port, Version } from "./constants.ts";
import type { MultipartRequest } from "./multipart.ts";
import { macText } from "./values.ts";
import type { WireReader } from "./wire-reader.ts";

/** A port of the switch (OpenFlow 1.5.1, 7.2.1). */
export interface OpenFlowPort {
  readonly number: number;
  readonly name: string;
  /** `02:00:00:00:00:01`. */
  readonly mac: string;
  /** OFPPC_PORT_DOWN: taken down by an administrator. */
  readonly isDown: boolean;
  /** OFPPS_LINK_DOWN: has no carrier. */
  readonly hasLink: boolean;
  /** OFPPC_* and OFPPS_* as they came. */
  readonly config: number;
  readonly state: number;
}

/** OFPMP_PORT_DESC (7.3.5.8). */
export function portsRequest(): MultipartRequest<OpenFlowPort> {
  return {
    action: "list the ports",
    type: MultipartType.PORT_DESC,
    body: (writer, version) => void (version >= Version.v15 && writer.u32(Port.ANY).zeros(4)),
    entry: readPort,
  };
}

const nameBytes = 16;

/** `struct ofp_port`: of fixed length in 1.3, with properties since. @throws {MalformedMessage} */
export function readPort(reader: WireReader, version: Version): OpenFlowPort {
  const number = reader.u32();
  const isNew = version >= Version.v15;
  const length = isNew ? reader.u16() : 64;
  if (length < 40) throw reader.malformed(`a port says ${length} bytes, wanted 40 at least`);
  const port = reader.part(length - (isNew ? 6 : 4), "a port").skip(isNew ? 2 : 4);
  const mac = macText(port.uint(6));
  const name = port.skip(2).text(nameBytes);
  const config = port.u32();
  const state = port.u32();
  return { number, name, mac, isDown: (config & 1) !== 0, hasLink: (state & 1) === 0, config, state };
}

export interface PortStatus {
  readonly t: "port-status";
  readonly change: "add" | "delete" | "modify";
  readonly port: OpenFlowPort;
}

const changes = ["add", "delete", "modify"] as const;

/** OFPT_PORT_STATUS (7.4.3). @throws {MalformedMessage} */
export function readPortStatus(reader: WireReader, version: Version): PortStatus {
  const reason = reader.u8();
  const change = changes[reason];
  if (change === undefined) throw reader.malformed(`its reason is ${reason}, wanted 0 to 2`);
  return { t: "port-status", change, port: readPort(reader.skip(7), version) };
}
