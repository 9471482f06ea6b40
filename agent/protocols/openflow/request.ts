import type { Version } from "./constants.ts";
import type { WireWriter } from "./wire-writer.ts";

/** One message before it is numbered and framed. */
export interface Request {
  /** Continues "Cannot …" in the error: `add flow "table=3, actions=drop"`. */
  readonly action: string;
  /** `MessageType`; an experimenter's message begins its body with vendor and subtype. */
  readonly type: number;
  /** Writes what follows the header. @throws {OpenFlowError} where `version` cannot say it */
  readonly body: (writer: WireWriter, version: Version) => void;
}

/** Appends one message: header (OpenFlow 1.5.1, 7.1.1) and body. @throws {OpenFlowError} as the body does */
export function writeMessage(writer: WireWriter, request: Request, xid: number, version: Version): void {
  const start = writer.length;
  writer.u8(version).u8(request.type).u16(0).u32(xid);
  request.body(writer, version);
  writer.setU16(start + 2, writer.length - start);
}
