/**
 * The database of Open vSwitch, spoken with directly: OVSDB (RFC 7047) over a unix socket, a named pipe of Windows or
 * TCP. No policy: the data paths decide about bridges and ports.
 */
export { OvsdbClient } from "./client.ts";
export { Connection } from "./connection.ts";
export { OvsdbCode, OvsdbError } from "./ovsdb-error.ts";
export { Transaction } from "./transaction.ts";
export { type ByteStream, type OvsdbAddress, openStream, parseAddress } from "./transport.ts";
export { parseUuid } from "./values.ts";
export type { Monitored, RowChange } from "./view.ts";
export { insertBridge, insertPort, removeBridge, removePorts, transactAndApply, waitForOfport } from "./vswitch.ts";
