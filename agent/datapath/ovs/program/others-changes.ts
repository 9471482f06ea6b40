import {
  type ConnectionEvent,
  forwardRequests,
  type OpenFlowClient,
  OpenFlowError,
} from "../../../protocols/openflow/mod.ts";
import { isLearned } from "../pipeline/cookie.ts";

/**
 * Has the switch tell what others change in it: flows by its monitor, groups and meters as the requests that it has
 * carried out. What this connection changes is told in short, eight bytes for each request.
 * @returns why it does not tell of flows; nothing where it does @throws {OpenFlowError} where the connection is lost
 */
export async function watchOthers(client: OpenFlowClient): Promise<string | undefined> {
  try {
    // What it refuses of this costs the rest nothing.
    await client.run([forwardRequests]);
    await client.watchFlows();
    return undefined;
  } catch (caught) {
    if (!(caught instanceof OpenFlowError) || caught.kind === "lost") throw caught;
    return caught.message;
  }
}

/**
 * Whether somebody else may have changed what is ours. What packets have had learned is nobody's; a switch that cannot
 * keep up says `paused` in place of what it leaves out.
 */
export function isOthers(event: ConnectionEvent): boolean {
  switch (event.t) {
    case "flow-update":
      return event.event !== "own" && !isLearned(event.cookie);
    case "request-forwarded":
    case "unreadable":
      return true;
    default:
      return false;
  }
}
