/**
 * The database of Open vSwitch, spoken with directly: OVSDB (RFC 7047) over a unix socket, a named pipe of Windows or
 * TCP. No policy: what bridges and ports there should be is the data paths'.
 */
export { type OvsdbAddress, parseAddress } from "./address.ts";
export {
  insertBridge,
  insertPort,
  type NewPort,
  removeBridge,
  removePorts,
  requireBridge,
} from "./bridge-operations.ts";
export { openStream } from "./byte-stream.ts";
export { OvsdbClient, type OvsdbState } from "./client.ts";
export { Connection } from "./connection.ts";
export { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
export { schemaDifferences } from "./schema-check.ts";
export { Transaction } from "./transaction.ts";
export type { Monitored, RowChange } from "./view.ts";
export { transactAndApply, waitForOfport } from "./vswitch.ts";
