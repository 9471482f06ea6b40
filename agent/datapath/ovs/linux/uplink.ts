import { CniCode, CniError } from "../../../../shared/errors.ts";
import type { Link, NetlinkSocket } from "../../../netlink/mod.ts";

export function moveToBridge(_socket: NetlinkSocket, uplink: Link, _bridge: Link): void {
  throw new CniError(CniCode.invalidConfig, `Cannot use "${uplink.name}" as uplink: that is still to come`);
}
