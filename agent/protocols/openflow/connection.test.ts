import { describe, expect, test } from "vitest";
import {
  type Ending,
  ending,
  features,
  hello,
  message,
  refusal,
  ScriptedSwitch,
} from "../../../test/fakes/openflow/scripted-switch.ts";
import { output } from "./action.ts";
import { maxPendingRequests } from "./connection.ts";
import { MessageType } from "./constants.ts";
import { BatchExchange, errorsKept, MultipartExchange, SingleExchange } from "./exchange.ts";
import { flow } from "./flow.ts";
import { flowText } from "./flow-text.ts";
import { addFlow, flowsRequest } from "./flow-wire.ts";
import type { OpenFlowError } from "./openflow-error.ts";
import { MultipartAnswer, multipartMessage, type Request } from "./request.ts";

const barrier: Request = { action: "wait", type: MessageType.BARRIER_REQUEST, body: () => undefined };
const flows = [1, 2, 3].map((priority) => flow({ priority, actions: [output(priority)] }));
const adds = flows.map(addFlow);

function run(script: ScriptedSwitch, requests: readonly Request[], deadline = 1000): Ending<readonly OpenFlowError[]> {
  const end = ending<readonly OpenFlowError[]>();
  script.connection.start(new BatchExchange(requests, end), [...requests, barrier], deadline);
  return end;
}

function bundle(script: ScriptedSwitch, deadline = 1000): Ending<true> {
  const end = ending<true>();
  const waiting = { resolve: () => end.resolve(true), reject: (error: Error) => end.reject(error) };
  script.connection.startBundle(adds, deadline, waiting);
  return end;
}

function list(script: ScriptedSwitch): Ending<unknown[]> {
  const end = ending<unknown[]>();
  const request = flowsRequest();
  script.connection.start(new MultipartExchange(request, end), [multipartMessage(request)], 1000);
  return end;
}

/** One flow as 1.5 lists it: table 3, priority 5, no counters, no instructions. */
const listed = "0028 0000 03 00 0005 0000 0000 0000 0000 0000000000000007 0001 0004 00000000 0000 0004 00000000";
const control = (xid: number, kind: number): Uint8Array =>
  message(MessageType.BUNDLE_CONTROL, xid, `00000001 000${kind} 0003`);

describe.each([1, 3, 7, Number.POSITIVE_INFINITY])("with %d bytes at a time", (cut) => {
  test("agrees on a version and learns what the switch is", () => {
    const script = ScriptedSwitch.opened(cut);
    expect(script.connection.state).toMatchObject({
      t: "open",
      features: { datapathId: 0x26e00d5a764fn, tables: 254 },
    });
  });

  test("requests one by one: those that fail are named, the barrier ends them", () => {
    const script = ScriptedSwitch.opened(cut);
    const end = run(script, adds);
    const [first, second] = script.heard();
    const last = (first?.xid ?? 0) + 3;
    script.say(refusal(second?.xid ?? 0, 4, 9, second?.bytes));
    expect(end.value).toBeUndefined();
    script.say(message(MessageType.BARRIER_REPLY, last));
    expect(end.value?.map((error) => error.message)).toEqual([
      `Cannot add flow "${flowText(flows[1]!)}": the switch answers OFPBMC_BAD_PREREQ (a field needs one before it that is missing)`,
    ]);
  });

  test("changes of flows that the switch tells by itself are events, and what is broken in them costs nothing else", () => {
    const script = ScriptedSwitch.opened(cut);
    const told = (entries: string, type = "0010") =>
      message(MessageType.MULTIPART_REPLY, 0, `${type} 0000 00000000 ${entries}`);
    const removed = "0020 0002 05 02 0000 0000 0007 00000000 000000000000002a 0001 0004 00000000";
    script.say(told(`0008 0004 00000009 ${removed} 0008 0005 00000000 0008 0006 00000000 0008 0063 00000000`));
    expect(script.events).toEqual(
      ["own", "removed", "paused", "resumed", "other"].map((event) => ({
        t: "flow-update",
        event,
        cookie: event === "removed" ? 42n : 0n,
      })),
    );
    script.events.length = 0;
    const meterMod = "061d 0010 00000007 0001 0001 00000400";
    script.say(told("0004 0001"), told("0040 0001 05"), told("0010 0001 00000000 00000000 00000000"));
    script.say(told(removed, "0001"), message(MessageType.REQUESTFORWARD, 0, meterMod));
    script.say(message(MessageType.REQUESTFORWARD, 0, "061d"));
    expect(script.events).toEqual([
      ...[1, 2, 3].map(() => expect.objectContaining({ t: "unreadable" })),
      { t: "request-forwarded", changed: "meter" },
      expect.objectContaining({ t: "unreadable" }),
    ]);
    expect(script.connection.state.t).toBe("open");
  });

  test("an answer in parts is joined, others come in between", () => {
    const script = ScriptedSwitch.opened(cut);
    const [one, two] = [list(script), list(script)];
    const [first, second] = script.heard().map(({ xid }) => xid);
    const part = (xid = 0, more: number, entries: string) =>
      message(MessageType.MULTIPART_REPLY, xid, `0001 000${more} 00000000 ${entries}`);
    script.say(part(first, 1, listed + listed), part(second, 1, ""), message(MessageType.ECHO_REQUEST, 77, "abcd"));
    script.say(part(second, 0, listed), part(first, 0, listed));
    expect([one.value?.length, two.value?.length]).toEqual([3, 1]);
    expect(one.value?.[0]).toMatchObject({ flow: { table: 3, priority: 5, cookie: 7n, actions: [] } });
    expect(script.heard().map(({ type, xid, bytes }) => [type, xid, [...bytes.subarray(8)]])).toEqual([
      [MessageType.ECHO_REPLY, 77, [0xab, 0xcd]],
    ]);
  });

  test("a bundle is committed when all of it was taken", () => {
    const script = ScriptedSwitch.opened(cut);
    const end = bundle(script);
    const sent = script.heard();
    expect(sent.map(({ type }) => type)).toEqual([33, 34, 34, 34, 33]);
    // The message inside has the number of the one around it.
    expect(sent.slice(1, 4).every(({ bytes, xid }) => Buffer.from(bytes).readUInt32BE(20) === xid)).toBe(true);
    const xid = sent[0]?.xid ?? 0;
    script.say(control(xid, 1), control(xid + 4, 3));
    const [commit] = script.heard();
    expect(Buffer.from(commit?.bytes ?? []).readUInt16BE(12)).toBe(4);
    expect(end.value).toBeUndefined();
    script.say(control(commit?.xid ?? 0, 5));
    expect(end.value).toBe(true);
  });

  test("a bundle is discarded where one message was refused", () => {
    const script = ScriptedSwitch.opened(cut);
    const end = bundle(script);
    const xid = script.heard()[0]?.xid ?? 0;
    script.say(control(xid, 1), refusal(xid + 2, 5, 2), refusal(xid + 3, 5, 2), control(xid + 4, 3));
    const [discard] = script.heard();
    expect(Buffer.from(discard?.bytes ?? []).readUInt16BE(12)).toBe(6);
    expect(end.error).toBeUndefined();
    script.say(control(discard?.xid ?? 0, 7));
    expect(end.error?.message).toContain(
      `Cannot add flow "${flowText(flows[1]!)}": the switch answers OFPFMFC_BAD_TABLE_ID`,
    );
  });
});

test("a commit that fails names the flow that did it", () => {
  const script = ScriptedSwitch.opened();
  const end = bundle(script);
  const xid = script.heard()[0]?.xid ?? 0;
  script.say(control(xid, 1), control(xid + 4, 3));
  const commit = script.heard()[0]?.xid ?? 0;
  script.say(refusal(xid + 3, 2, 9), refusal(commit, 17, 13));
  expect(end.error?.message).toContain(`add flow "${flowText(flows[2]!)}": the switch answers OFPBAC_BAD_OUT_GROUP`);
  // The next one is not disturbed.
  expect(bundle(script).error).toBeUndefined();
});

test("a bundle that cannot be opened says why", () => {
  const script = ScriptedSwitch.opened();
  const end = bundle(script);
  const xid = script.heard()[0]?.xid ?? 0;
  script.say(...[0, 1, 2, 3, 4].map((i) => refusal(xid + i, 17, i === 0 ? 5 : 2)));
  expect(end.error?.message).toBe("Cannot make 3 changes: the switch answers OFPBFC_OUT_OF_BUNDLES");
});

test("a switch that commits after a refusal is not believed", () => {
  const script = ScriptedSwitch.opened();
  const end = bundle(script);
  const xid = script.heard()[0]?.xid ?? 0;
  script.say(control(xid, 1), control(xid + 4, 3), refusal(xid + 1, 5, 2), control(xid + 5, 5));
  expect(end.error?.message).toContain("OFPFMFC_BAD_TABLE_ID");
});

test("what is late ends, the rest goes on, and a late bundle is discarded", () => {
  const script = ScriptedSwitch.opened();
  const slow = run(script, adds, 500);
  const other = run(script, [], 900);
  const late = bundle(script, 400);
  expect(script.connection.expire(399)).toBe(400);
  expect(script.connection.expire(500)).toBe(900);
  const is = "no answer came in time";
  expect([slow.error?.message, late.error?.message]).toEqual([
    `Cannot make 3 changes: ${is}`,
    `Cannot make 3 changes: ${is}`,
  ]);
  const sent = script.heard();
  const last = sent.at(-1);
  expect(Buffer.from(last?.bytes ?? []).readUInt16BE(12)).toBe(6);
  // An answer that comes all the same is nobody's.
  script.say(
    message(MessageType.BARRIER_REPLY, sent[3]?.xid ?? 0),
    message(MessageType.BARRIER_REPLY, sent[4]?.xid ?? 0),
  );
  expect(other.value).toEqual([]);
  expect(script.connection.expire(10_000)).toBeUndefined();
});

test("the end of the connection ends everything that waits, once", () => {
  const script = ScriptedSwitch.opened();
  const ends = [run(script, adds), bundle(script), list(script)];
  script.say(message(MessageType.FLOW_MOD, 1, "", 9));
  const is =
    "the connection ended (Cannot go on with the switch: Cannot read an OpenFlow message: its version is 9, wanted 6)";
  expect(ends.map(({ error }) => error?.message)).toEqual([
    `Cannot make 3 changes: ${is}`,
    `Cannot make 3 changes: ${is}`,
    `Cannot list the flows "": ${is}`,
  ]);
  expect(() => run(script, adds)).toThrow(is);
  script.say(features(1));
  expect(script.connection.state.t).toBe("closed");
  expect(script.heard()).toEqual([]);
});

test.each([
  ["a length below the header's", Buffer.from("060a000700000001", "hex"), "it says 7 bytes, wanted 8 at least"],
  ["a second HELLO of an old version is nothing", message(MessageType.HELLO, 0, "", 1), undefined],
  ["the half of a message is nothing yet", Buffer.from("060a00", "hex"), undefined],
])("%s", (_name, bytes, is) => {
  const script = ScriptedSwitch.opened();
  script.say(bytes);
  const { state } = script.connection;
  expect(state.t === "closed" ? state.error.message : undefined).toEqual(is && expect.stringContaining(is));
});

test("what is broken inside is told to who waits, or is an event, and the connection goes on", () => {
  const script = ScriptedSwitch.opened();
  const end = list(script);
  const xid = script.heard()[0]?.xid ?? 0;
  script.say(message(MessageType.MULTIPART_REPLY, xid, "0001 0000 00000000 0030 0000"));
  expect(end.error).toMatchObject({ kind: "malformed", message: expect.stringContaining('Cannot list the flows ""') });
  script.say(
    message(MessageType.REQUESTFORWARD, 0, "0900"),
    message(MessageType.BUNDLE_CONTROL, 0, "00"),
    message(99, 0, "0102"),
  );
  expect(script.events.map(({ t }) => t)).toEqual(["unreadable", "unreadable"]);
  script.say(refusal(12345, 1, 1, message(MessageType.GROUP_MOD, 5)));
  expect(script.events.at(-1)).toMatchObject({ t: "refused", cause: MessageType.GROUP_MOD });
  expect(script.connection.state.t).toBe("open");
});

test("an answer of another kind is none", () => {
  const script = ScriptedSwitch.opened();
  const ends = [run(script, adds), list(script)];
  const end = ending<true>();
  const echo: Request = { action: "hear", type: MessageType.ECHO_REQUEST, body: () => undefined };
  script.connection.start(
    new SingleExchange("hear", ({ t }) => (t === "echo-reply" ? true : undefined), end),
    [echo],
    1000,
  );
  const xid = script.heard()[0]?.xid ?? 0;
  for (const i of [1, 4, 5]) script.say(features(xid + i));
  expect([...ends, end].map(({ error }) => error)).toEqual(
    Array(3).fill(expect.objectContaining({ kind: "malformed" })),
  );
});

test("parts that together are too long end the answer", () => {
  const answer = new MultipartAnswer(flowsRequest(), 100);
  const part = Buffer.from(`0001 0001 00000000 ${listed}`.replaceAll(" ", ""), "hex");
  expect(answer.push(part)).toBe(false);
  expect(answer.push(part)).toBe(false);
  expect(() => answer.push(part)).toThrow("it is longer than 100 bytes");
});

describe("before it is open", () => {
  test.each([
    ["others than ours", hello((1 << 5) | (1 << 4)), "unsupported", "the switch speaks others up to 6, wanted 6"],
    ["an old one without a bitmap", message(MessageType.HELLO, 0, "", 1), "unsupported", "up to 1"],
    ["a refusal", refusal(0, 0, 0, new TextEncoder().encode("too new")), "refused", "OFPHFC_INCOMPATIBLE (too new)"],
    ["no HELLO", features(1), "malformed", "type 6 came first, wanted HELLO"],
    ["a broken HELLO", message(MessageType.HELLO, 0, "0001 0003"), "malformed", "an element says 3 bytes"],
    [
      "something else",
      new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n".repeat(999)),
      "malformed",
      "type 84 came first",
    ],
  ])("%s ends it", (_name, bytes, kind, is) => {
    const script = new ScriptedSwitch();
    script.say(bytes);
    expect(script.connection.state).toMatchObject({
      t: "closed",
      error: { kind, message: expect.stringContaining(is) },
    });
  });

  test.each([6, 7])("a HELLO without a bitmap says the highest of all below, here %i", (highest) => {
    const script = new ScriptedSwitch();
    script.say(message(MessageType.HELLO, 0, "", highest));
    expect(script.connection.state).toEqual({ t: "features" });
  });

  test("unknown elements of HELLO are left out", () => {
    const script = new ScriptedSwitch();
    script.say(message(MessageType.HELLO, 0, "0009 0006 ffff 0000 0001 0008 00000040"));
    expect(script.connection.state).toEqual({ t: "features" });
  });

  test("nothing can be asked, and echo is answered", () => {
    const script = new ScriptedSwitch();
    expect(() => run(script, adds)).toThrow("it is not open yet");
    script.say(hello(), message(MessageType.ECHO_REQUEST, 5));
    expect(script.heard().map(({ type }) => type)).toEqual([
      MessageType.HELLO,
      MessageType.FEATURES_REQUEST,
      MessageType.ECHO_REPLY,
    ]);
    script.say(refusal(2, 1, 5));
    expect(script.connection.state).toMatchObject({
      t: "closed",
      error: { message: expect.stringContaining("OFPBRC_EPERM") },
    });
  });
});

test("what waits is bounded, and a request that cannot be said leaves nothing behind", () => {
  const script = ScriptedSwitch.opened();
  script.heard();
  const long: Request = { ...barrier, body: (writer) => void writer.zeros(6000) };
  const fill = Array.from({ length: 100 }, () => long);
  const broken: Request = {
    ...barrier,
    body: () => {
      throw new Error("cannot be said");
    },
  };
  expect(() => run(script, [...adds, broken])).toThrow("cannot be said");
  expect(script.connection.waiting).toBe(0);
  run(script, fill);
  run(script, fill);
  expect(() => run(script, adds)).toThrow("requests wait already");
  script.heard();
  expect(() =>
    run(
      script,
      Array.from({ length: maxPendingRequests }, () => barrier),
    ),
  ).toThrow("requests wait already");
  // One that asks and does not read ends.
  for (let i = 0; i < 100 && script.connection.state.t === "open"; i++)
    script.say(message(MessageType.ECHO_REQUEST, i, new Uint8Array(60_000)));
  expect(script.connection.state).toMatchObject({ t: "closed", error: { kind: "full" } });
});

test("what was answered waits no more", () => {
  const script = ScriptedSwitch.opened();
  const many = Array.from({ length: 0.6 * maxPendingRequests }, () => barrier);
  for (let round = 0; round < 3; round++) {
    const end = run(script, many);
    script.say(message(MessageType.BARRIER_REPLY, script.heard().at(-1)?.xid ?? 0));
    expect(end.value).toEqual([]);
  }
});

test("numbers of one exchange lie side by side, also where they begin again", () => {
  const script = ScriptedSwitch.opened(undefined, 0xffff_fffd);
  const ends = [run(script, adds), bundle(script)];
  const sent = script.heard().map(({ xid }) => xid);
  expect(sent).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
  script.say(refusal(2, 5, 2), message(MessageType.BARRIER_REPLY, 4), control(5, 1), control(9, 3), control(10, 5));
  expect(ends.map(({ value }) => value)).toEqual([[expect.objectContaining({ kind: "refused" })], true]);
});

test("of many refusals the first are kept", () => {
  const script = ScriptedSwitch.opened();
  const end = run(
    script,
    Array.from({ length: 50 }, () => adds[0]!),
  );
  const sent = script.heard();
  script.say(
    ...sent.slice(0, 50).map(({ xid }) => refusal(xid, 5, 2)),
    message(MessageType.BARRIER_REPLY, sent[50]?.xid ?? 0),
  );
  expect(end.value).toHaveLength(errorsKept);
});
