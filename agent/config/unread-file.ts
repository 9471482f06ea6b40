import { isDenial, isUnprivileged, whoMay } from "../../shared/os/rights.ts";
import { reasonOf } from "../../shared/reason.ts";

/** The middle and the end of a message about an agent.yaml that could not be read. */
export function unreadFile(caught: unknown): string {
  if (isDenial(caught) && isUnprivileged()) return `this user may not read it (EACCES), wanted ${whoMay}`;
  if (caught instanceof Error && "code" in caught && caught.code === "ENOENT")
    return 'it is not there, wanted the agent\'s configuration: "pipette install" writes one, --config names another';
  return `${reasonOf(caught)}, wanted a readable file`;
}
