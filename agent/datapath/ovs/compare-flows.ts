import { isWindows } from "../../../shared/os/platform.ts";
import { type Flow, flowText, OpenFlowClient, parseAddress } from "../../protocols/openflow/mod.ts";
import { mismatch } from "../linux/compare.ts";

/** Looks at the switch itself for flows that it should have. @throws {CniError} 103 naming the first one missing */
export async function compareFlows(management: string, wanted: readonly Flow[]): Promise<void> {
  using client = await OpenFlowClient.connect(parseAddress(management, isWindows));
  const answers = await Promise.all(wanted.map(({ table, match }) => client.flows({ table, match })));
  wanted.forEach((flow, i) => {
    const standing = answers[i] ?? [];
    if (standing.some((one) => textOf(one.flow) === textOf(flow))) return;
    throw mismatch(`the flow "${textOf(flow)}"`, "missing or another", "in the switch");
  });
}

const textOf = (flow: Flow): string => flowText({ ...flow, cookie: 0n, flags: [] });
