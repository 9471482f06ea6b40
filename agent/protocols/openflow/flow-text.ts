import { actionsText } from "./action-text.ts";
import { defaultPriority, FlowFlag } from "./constants.ts";
import type { Flow, Instructions } from "./flow.ts";
import { isWholeMetadata } from "./instruction-wire.ts";
import { matchText } from "./match-text.ts";
import { hex } from "./values.ts";

/**
 * One flow on one line as `ovs-ofctl --no-stats --no-names dump-flows` prints it, without the space in front. It can be
 * given to `ovs-ofctl add-flow` as it is.
 */
export function flowText(flow: Flow): string {
  const flags = flow.flags.length === 0 ? "" : `${orderedFlags(flow)} `;
  const head = [
    flow.cookie === 0n ? "" : `cookie=${hex(flow.cookie)}, `,
    flow.table === 0 ? "" : `table=${flow.table}, `,
    flow.idleTimeout === 0 ? "" : `idle_timeout=${flow.idleTimeout}, `,
    flow.hardTimeout === 0 ? "" : `hard_timeout=${flow.hardTimeout}, `,
    flags,
    flow.importance === 0 ? "" : `importance=${flow.importance}, `,
  ].join("");
  const priority = flow.priority === defaultPriority ? "" : `priority=${flow.priority}`;
  const match = [priority, matchText(flow.match)].filter((part) => part !== "").join(",");
  return `${head}${match === "" ? "" : `${match} `}actions=${instructionsText(flow)}`;
}

function orderedFlags(flow: Flow): string {
  return (Object.keys(FlowFlag) as FlowFlag[]).filter((flag) => flow.flags.includes(flag)).join(" ");
}

function instructionsText(of: Instructions): string {
  const { metadata } = of;
  const parts = [
    of.actions.length === 0 ? undefined : actionsText(of.actions),
    of.clearActions ? "clear_actions" : undefined,
    of.writeActions.length === 0 ? undefined : `write_actions(${actionsText(of.writeActions)})`,
    metadata === undefined
      ? undefined
      : `write_metadata:${hex(metadata.value)}${isWholeMetadata(metadata.mask) ? "" : `/${hex(metadata.mask)}`}`,
    of.gotoTable === undefined ? undefined : `goto_table:${of.gotoTable}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? actionsText([]) : parts.join(",");
}
