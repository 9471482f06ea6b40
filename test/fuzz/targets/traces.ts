import { observationOf } from "../../../agent/datapath/ovs/tracing/observation.ts";
import { stepsOf, type TraceNames } from "../../../agent/datapath/ovs/tracing/steps.ts";
import { MessageType } from "../../../agent/protocols/openflow/constants.ts";
import { readMessage } from "../../../agent/protocols/openflow/message.ts";
import { MalformedMessage } from "../../../agent/protocols/openflow/openflow-error.ts";
import { TraceSessions } from "../../../agent/views/trace-sessions.ts";
import { compose } from "../../../operator/trace/compose.ts";
import { traceText } from "../../../operator/trace/trace-text.ts";
import { readNodeTrace, readOne, traceSchema } from "../../../shared/documents/mod.ts";
import { CniError } from "../../../shared/errors.ts";
import { createLogger } from "../../../shared/log.ts";
import { printable } from "../../../shared/printable.ts";
import { RpcError } from "../../../shared/rpc/rpc-error.ts";
import type { Target } from "../engine/target.ts";
import { frameMutator, openflowFrames } from "../mutate/frames.ts";
import { jsonMutator } from "../mutate/json.ts";
import { requireSentence } from "./words.ts";

const names: TraceNames = {
  port: (ofport) => ({
    name: String(ofport),
    kind: (["pod", "tunnel", "gateway", "uplink"] as const)[ofport % 4] ?? "pod",
  }),
  rule: () => undefined,
  isolating: () => [],
  nodeOf: () => undefined,
  nodeAt: () => undefined,
  isOwn: () => false,
  isRoutedOnly: false,
};

/** A switch's message about a packet, of whatever a pod has sent. */
export const packetIn: Target = {
  name: "packet-in",
  what: "packets that a switch tells of, and the steps that follow",
  mutators: [frameMutator(openflowFrames)],
  dictionary: ["\x80\x01", "\x00\x01\xd2\x04", "pipette trace ", "\x08\x00", "\x86\xdd"],
  maxBytes: 4 * 1024,
  open: () => ({
    run: (input) => {
      try {
        const message = readMessage({ version: 6, type: MessageType.PACKET_IN, xid: 0, bytes: input });
        if (message.t !== "packet-in") throw new Error(`It is read as "${message.t}"`);
        const seen = observationOf(message, 1);
        if (seen === undefined) return;
        for (const ended of [false, true])
          for (const { text, table } of stepsOf([seen], ended, names)) requireLine(`${table} ${text}`);
      } catch (caught) {
        if (!(caught instanceof MalformedMessage)) throw caught;
        requireSentence(caught.message, "a malformed message");
      }
    },
  }),
};

const words = [
  ...["t", "start", "collect", "end", "session", "probe", "role", "inject", "receive", "live", "seconds", "packets"],
  ...["steps", "component", "action", "dropped", "delivered", "verdict", "kind", "trace", "node-trace", "version"],
];

/** What a tool asks an agent, and what an agent answers a tool. */
export const traceDocuments: Target = {
  name: "trace-documents",
  what: "requests for traces, and what agents answer",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 16 * 1024,
  open: () => {
    const logger = createLogger("error", () => undefined);
    const sessions = new TraceSessions({
      node: "a",
      dataPath: "bridge",
      hasSwitch: false,
      logger,
      tracing: () => undefined,
    });
    return {
      run: async (input) => {
        // There is nothing here that could follow packets.
        await refusedBy(() => sessions.answer(input, "somebody", new AbortController().signal));
        await refusedBy(async () => readOne(traceSchema, input, "the trace"));
        await refusedBy(async () => {
          const trace = readNodeTrace("a", input, "here");
          const parts = trace.packets.map((packet) => ({ trace, packet }));
          const ends = { mode: "live", source: "x/y", destination: "x/z", startedAtMs: 1, nothing: "nothing" } as const;
          const whole = compose({ ...ends, parts, onward: { t: "unseen" }, failures: [], remarks: [] }, 2);
          for (const line of traceText(whole).split("\n")) requireLine(line);
        });
      },
      close: () => sessions[Symbol.asyncDispose](),
    };
  },
};

async function refusedBy(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (caught) {
    if (!(caught instanceof CniError || caught instanceof RpcError)) throw caught;
    requireLine(caught.message);
  }
}

function requireLine(text: string): void {
  if (printable(text) !== text) throw new Error(`A terminal would obey ${JSON.stringify(text)}`);
}
