import { CniCode, CniError } from "../../../shared/errors.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { hasSystemd } from "../../../shared/os/systemd.ts";
import { OpenFlowError } from "../../protocols/openflow/mod.ts";
import { OvsdbCode, OvsdbError } from "../../protocols/ovsdb/mod.ts";

/** The database, or the switch behind it, did not answer: another time it may. */
const passing: ReadonlySet<string> = new Set([
  OvsdbCode.unreachable,
  OvsdbCode.late,
  OvsdbCode.disconnected,
  OvsdbCode.closed,
  OvsdbCode.notSeen,
  // The row that it hangs on has gone: it is made again.
  OvsdbCode.timedOut,
]);

/** The same of the switch itself: it says nothing of what was asked for. */
const away: readonly OpenFlowError["kind"][] = ["late", "lost", "malformed"];

/** For the events of pods, of an Open vSwitch that gives no answer. */
export const whereToLook = (): string =>
  `${isWindows ? '"Get-Service ovs*"' : hasSystemd() ? '"systemctl status openvswitch-switch"' : '"pgrep -a ovs-vswitchd"'} tells whether Open vSwitch runs`;

/** Does it, with the errors of Open vSwitch and its database as the caller of a verb sees them. @throws {CniError} 11, 102 */
export async function answering<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    throw switchError(caught);
  }
}

function switchError(caught: unknown): unknown {
  if (!(caught instanceof OvsdbError || caught instanceof OpenFlowError)) return caught;
  const isPassing = caught instanceof OvsdbError ? passing.has(caught.code) : away.includes(caught.kind);
  const code = isPassing ? CniCode.tryAgainLater : CniCode.interfaceFailure;
  // The runtime's library takes these words in a DEL's error for success.
  const message = caught.message
    .replace(/not found/gi, "absent")
    .replace(/no such (device|file or directory)/gi, "absent");
  return new CniError(code, message, { cause: caught, details: isPassing ? whereToLook() : undefined });
}
