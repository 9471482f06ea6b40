import { expect, test } from "vitest";
import { pipelineFlows } from "../../../test/overlay/pipeline-flows.ts";
import { flowText } from "./flow-text.ts";
import { addFlow, readInstructions } from "./flow-wire.ts";
import { readMatch } from "./match-wire.ts";
import { writeMessage } from "./request.ts";
import { WireReader } from "./wire-reader.ts";
import { WireWriter } from "./wire-writer.ts";

/** Header and what stands in front of the match. */
const headBytes = 48;

test.each(pipelineFlows.map(([given, text]) => [text, given] as const))("prints %s", (text, given) => {
  expect(flowText(given)).toBe(text);
});

test("reads back what it writes", () => {
  for (const [given, text] of pipelineFlows) {
    const writer = new WireWriter(8);
    writeMessage(writer, addFlow(given), 1);
    const reader = new WireReader(writer.done(), "a flow").skip(headBytes);
    const match = readMatch(reader);
    expect(flowText({ ...given, match, ...readInstructions(reader) })).toBe(text);
  }
});
