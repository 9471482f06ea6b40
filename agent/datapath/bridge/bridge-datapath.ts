import type { DataPath } from "../datapath.ts";
import type { BridgeDataPathOptions } from "./options.ts";

/**
 * Opens the data path; `start()` prepares the node.
 * @throws {CniError} code 7 where the options contradict themselves, 102 where the kernel refuses a socket
 */
export function createBridgeDataPath(_options: BridgeDataPathOptions): DataPath {
  throw new Error("Broken invariant: the bridge data path is not wired up yet");
}
