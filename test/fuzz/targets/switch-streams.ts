import { MessageType } from "../../../agent/protocols/openflow/constants.ts";
import { BatchExchange, MultipartExchange } from "../../../agent/protocols/openflow/exchange.ts";
import type { Flow } from "../../../agent/protocols/openflow/flow.ts";
import { flowText } from "../../../agent/protocols/openflow/flow-text.ts";
import { addFlow, flowsRequest } from "../../../agent/protocols/openflow/flow-wire.ts";
import { groupsRequest } from "../../../agent/protocols/openflow/group.ts";
import { metersRequest } from "../../../agent/protocols/openflow/meter.ts";
import { InvalidFlow, MalformedMessage, OpenFlowError } from "../../../agent/protocols/openflow/openflow-error.ts";
import {
  MultipartAnswer,
  multipartMessage,
  type Request,
  writeMessage,
} from "../../../agent/protocols/openflow/request.ts";
import { WireWriter } from "../../../agent/protocols/openflow/wire-writer.ts";
import { JsonRpc } from "../../../agent/protocols/ovsdb/json-rpc.ts";
import { type Known, readUpdates } from "../../../agent/protocols/ovsdb/monitor.ts";
import { OvsdbError } from "../../../agent/protocols/ovsdb/ovsdb-error.ts";
import { readAnswer, Transaction } from "../../../agent/protocols/ovsdb/transaction.ts";
import { View } from "../../../agent/protocols/ovsdb/view.ts";
import { ScriptedSwitch } from "../../fakes/openflow/scripted-switch.ts";
import type { Target } from "../engine/target.ts";
import { frameMutator, openflowFrames } from "../mutate/frames.ts";
import { jsonLinesMutator } from "../mutate/json.ts";
import { pieces } from "./http2.ts";
import { requireSentence } from "./words.ts";

const monitored = {
  Bridge: ["name", "ports", "fail_mode"],
  Port: ["name", "tag", "trunks", "external_ids"],
  Interface: ["name", "ofport", "error", "options"],
} as const;

const words = [
  ...["method", "params", "id", "result", "error", "update2", "update", "echo", "monitor_cond", "initial", "insert"],
  ...[
    "modify",
    "delete",
    "old",
    "new",
    "set",
    "map",
    "uuid",
    "named-uuid",
    "Bridge",
    "Port",
    "Interface",
    "name",
    "ports",
  ],
  ...["tag", "trunks", "external_ids", "ofport", "count", "rows", "details", "constraint violation", "__proto__"],
];

/** The database's end of a connection: answers to a monitor and a transaction that run, updates, anything. */
function hear(chunks: Iterable<Uint8Array>): string {
  const heard: string[] = [];
  const view = new View(monitored);
  const known: Known = (table, uuid) => view.rows(table as "Port").get(uuid);
  const rpc = new JsonRpc((method, params) => {
    if (!/^update2?$/.test(method)) return;
    const changes = readUpdates(method as "update", monitored, params.at(-1), known);
    view.apply(changes);
    heard.push(`${method} ${changes.length}`);
  }, 64 * 1024);
  const transaction = new Transaction('add port "p1"');
  transaction.insert("Port", { name: "p1" });
  transaction.select("Port", [], ["name", "tag"]);
  rpc.request("monitor_cond", [], (reply) => {
    if (reply.t === "result") view.replace(readUpdates("update2", monitored, reply.result, () => undefined));
    heard.push(`monitor ${reply.t}`);
  });
  rpc.request("transact", [], (reply) => {
    heard.push(`transact ${reply.t}`);
    if (reply.t !== "result") return;
    try {
      readAnswer(transaction, reply.result);
    } catch (caught) {
      if (!(caught instanceof OvsdbError)) throw caught;
      heard.push(caught.code);
    }
  });
  try {
    for (const chunk of chunks) {
      rpc.receive(chunk);
      for (let front = rpc.front(); front.length > 0; front = rpc.front()) rpc.wrote(front.length);
    }
  } catch (caught) {
    // So the agent's client has it: what cannot be read of the first state ends the connection.
    if ((caught as Error).name !== "MalformedValue") throw caught;
    heard.push("malformed");
  }
  rpc.end("over");
  if (rpc.running !== 0) throw new Error(`${rpc.running} requests wait when all is over, wanted none`);
  return heard.join();
}

export const ovsdb: Target = {
  name: "ovsdb",
  what: "the stream of the switch's database",
  mutators: [jsonLinesMutator(words)],
  dictionary: words,
  maxBytes: 32 * 1024,
  open: () => ({
    run: (input) => {
      const whole = hear([input.slice()]);
      const cut = hear(pieces(input));
      if (whole !== cut) throw new Error(`The database says ${whole}, and ${cut} where the bytes come in pieces`);
    },
  }),
};

/** What was read of a switch can be shown, and sent again. */
function use(flow: Flow): void {
  flowText(flow);
  try {
    writeMessage(new WireWriter(), addFlow(flow), 1);
  } catch (caught) {
    if (!(caught instanceof InvalidFlow || caught instanceof OpenFlowError)) throw caught;
  }
}

function readParts(input: Uint8Array): void {
  for (const request of [groupsRequest(), metersRequest()]) readPart(new MultipartAnswer<unknown>(request), input);
  const flows = new MultipartAnswer(flowsRequest());
  readPart(flows, input);
  for (const { flow } of flows.entries) use(flow);
}

function readPart(answer: MultipartAnswer<unknown>, input: Uint8Array): void {
  try {
    answer.push(input);
  } catch (caught) {
    if (!(caught instanceof MalformedMessage)) throw caught;
    requireSentence(caught.message, "a malformed message");
  }
}

/** A switch that is asked for its flows and told to make one: what it answers, and what it says by itself. */
function talk(chunks: Iterable<Uint8Array>): string {
  const end = ScriptedSwitch.opened();
  const answers: string[] = [];
  const resolve = (value: readonly unknown[]): void => void answers.push(`${value.length}`);
  const reject = (error: OpenFlowError): void => {
    requireSentence(error.message, "the error of a request");
    answers.push(error.kind);
  };
  const flows = flowsRequest();
  end.connection.start(new MultipartExchange(flows, { resolve, reject }), [multipartMessage(flows)], 1);
  end.connection.start(new BatchExchange([barrier], { resolve, reject }), [barrier], 1);
  for (const chunk of chunks) end.say(chunk);
  end.connection.take();
  for (const event of end.events)
    if (event.t === "unreadable") requireSentence(event.error.message, "a malformed message");
  const { state } = end.connection;
  if (state.t === "closed") requireSentence(state.error.message, "the end of a connection");
  end.connection.expire(2);
  if (answers.length !== 2) throw new Error(`${answers.length} of 2 requests have ended when all is over`);
  return `${state.t} ${end.events.map(({ t }) => t).join()} ${answers.join()}`;
}

const barrier: Request = { action: "wait for the switch", type: MessageType.BARRIER_REQUEST, body: () => undefined };

export const openflow: Target = {
  name: "openflow",
  what: "the stream of the switch",
  mutators: [frameMutator(openflowFrames)],
  dictionary: ["\x06\x13\x00\x10", "\x00\x00\x23\x20", "\xff\xff", "\x80\x00", "\x00\x01\x00\x08"],
  maxBytes: 32 * 1024,
  open: () => ({
    run: (input) => {
      const whole = talk([input.slice()]);
      const cut = talk(pieces(input));
      if (whole !== cut) throw new Error(`The switch says ${whole}, and ${cut} where the bytes come in pieces`);
      readParts(input.subarray(8));
    },
  }),
};
