import { expect, test } from "vitest";
import { ScriptedSwitch } from "../../../test/fakes/openflow/scripted-switch.ts";
import { pipelineFlows } from "../../../test/overlay/pipeline-flows.ts";
import { random } from "../../../test/support/random.ts";
import { MessageType, Vendor } from "./constants.ts";
import { watchFlowsRequest } from "./flow-monitor.ts";
import { actionsText, flowText, groupText } from "./flow-text.ts";
import { addFlow, flowsRequest } from "./flow-wire.ts";
import { groupsRequest } from "./group.ts";
import { FrameReader, readMessage } from "./message.ts";
import { metersRequest } from "./meter.ts";
import { MalformedMessage } from "./openflow-error.ts";
import { MultipartAnswer, type MultipartRequest, writeMessage } from "./request.ts";
import { WireWriter } from "./wire-writer.ts";

/** Rounds of each kind; PIPETTE_FUZZ_ROUNDS asks for more, PIPETTE_SEED for others. */
const rounds = Number(process.env["PIPETTE_FUZZ_ROUNDS"] ?? 4000);
const seed = Number(process.env["PIPETTE_SEED"] ?? 1);

/** Runs `read`, which may refuse the bytes in our words and in no others. */
function survives(read: () => void, bytes: Uint8Array): boolean {
  try {
    read();
    return true;
  } catch (caught) {
    if (caught instanceof MalformedMessage) return false;
    throw new Error(`Bytes ${Buffer.from(bytes).toString("hex")}`, { cause: caught });
  }
}

const requests: readonly MultipartRequest<unknown>[] = [
  flowsRequest(),
  groupsRequest(),
  metersRequest(),
  watchFlowsRequest(),
];

/** Lists of one flow each, from the instructions and matches that `addFlow` writes. */
function flowLists(): Uint8Array[] {
  return pipelineFlows.map(([given]) => {
    const message = new WireWriter();
    writeMessage(message, addFlow(given), 1);
    const rest = message.done().subarray(48);
    const matchBytes = Math.ceil(((rest[2] ?? 0) * 256 + (rest[3] ?? 0)) / 8) * 8;
    const writer = new WireWriter()
      .u16(MessageType.FLOW_MOD && 1)
      .u16(0)
      .zeros(4);
    const start = writer.length;
    writer.u16(0).zeros(2).u8(given.table).zeros(1).u16(given.priority).u16(given.idleTimeout).u16(given.hardTimeout);
    writer.u16(0).u16(given.importance).u64(given.cookie).bytes(rest.subarray(0, matchBytes)).u32(4).zeros(4);
    writer.bytes(rest.subarray(matchBytes)).setU16(start, writer.length - start);
    return writer.done();
  });
}

function readList(request: MultipartRequest<unknown>, bytes: Uint8Array): unknown[] {
  const answer = new MultipartAnswer(request);
  answer.push(bytes);
  return answer.entries;
}

/** What is read can also be printed and written again. */
function useFlows(bytes: Uint8Array): void {
  const answer = new MultipartAnswer(flowsRequest());
  answer.push(bytes);
  for (const { flow } of answer.entries) {
    expect(flowText(flow)).toContain("actions=");
    writeMessage(new WireWriter(), addFlow(flow), 1);
  }
}

test("flows that were listed are read as they were", () => {
  flowLists().forEach((bytes, i) => {
    const answer = new MultipartAnswer(flowsRequest());
    expect(answer.push(bytes)).toBe(true);
    const [, text] = pipelineFlows[i]!;
    expect(answer.entries.map(({ flow }) => flowText(flow))).toEqual([
      text.replace("send_flow_rem check_overlap no_packet_counts ", ""),
    ]);
  });
});

test("flows cut anywhere, or with one byte changed, are refused or read", () => {
  const number = random(seed);
  const lists = flowLists();
  let read = 0;
  for (let round = 0; round < rounds; round++) {
    const whole = Uint8Array.from(lists[number(lists.length)]!);
    const bytes = round % 3 === 0 ? whole.subarray(0, number(whole.length)) : whole;
    if (bytes === whole)
      for (let changes = 1 + number(3); changes > 0; changes--) whole[number(whole.length)] = number(256);
    if (survives(() => useFlows(bytes), bytes)) read++;
  }
  // Both happen, else this shows nothing.
  expect(read).toBeGreaterThan(rounds / 20);
  expect(read).toBeLessThan(rounds);
});

test("noise in the place of any list is refused or read", () => {
  const number = random(seed + 1);
  for (let round = 0; round < rounds; round++) {
    const request = requests[round % requests.length]!;
    // Small numbers make lengths that fit more often.
    const most = round % 2 === 0 ? 256 : 24;
    const bytes = Uint8Array.from({ length: 4 + number(200) }, () => number(most));
    bytes.set([0, request.type, 0, 0]);
    survives(() => readList(request, bytes), bytes);
  }
});

test("noise in the place of any message is refused or read", () => {
  const number = random(seed + 2);
  for (let round = 0; round < rounds * 2; round++) {
    const type = number(36);
    const bytes = Uint8Array.from({ length: 8 + number(120) }, () => number(round % 2 === 0 ? 256 : 16));
    survives(() => void readMessage({ version: 6, type, xid: 1, bytes }), bytes);
  }
});

test("noise on an open connection never throws, and never leaves more than one message behind", () => {
  const number = random(seed + 3);
  for (let round = 0; round < rounds / 20; round++) {
    const script = ScriptedSwitch.opened();
    for (let i = 0; i < 20; i++) {
      const bytes = Uint8Array.from({ length: 8 + number(64) }, () => number(256));
      bytes.set([6, number(36), 0, round % 2 === 0 ? bytes.length : 8 + number(80)]);
      script.say(bytes);
    }
    expect(script.events.every(({ t }) => typeof t === "string")).toBe(true);
  }
});

test("frames of any lengths, cut anywhere, are the same frames", () => {
  const number = random(seed + 4);
  for (let round = 0; round < rounds / 20; round++) {
    const lengths = Array.from({ length: 1 + number(12) }, () => 8 + (number(4) === 0 ? 0 : number(400)));
    const all = Buffer.concat(
      lengths.map((length, i) =>
        new WireWriter()
          .u8(6)
          .u8(i)
          .u16(length)
          .u32(i * 7)
          .zeros(length - 8)
          .done(),
      ),
    );
    const reader = new FrameReader();
    const found: (readonly [number, number, number])[] = [];
    for (let at = 0; at < all.length; ) {
      const next = at + 1 + number(round % 2 === 0 ? 3 : 300);
      for (const { type, xid, bytes } of reader.push(all.subarray(at, next))) found.push([type, xid, bytes.length]);
      at = next;
    }
    expect(found).toEqual(lengths.map((length, i) => [i, i * 7, length]));
  }
});

test("actions that lie too deep are refused, not followed", () => {
  let inner = Buffer.alloc(0);
  for (let depth = 0; depth < 8; depth++) {
    const head = new WireWriter()
      .u16(0xffff)
      .u16(24 + inner.length)
      .u32(Vendor.NICIRA)
      .u16(35)
      .u16(1)
      .zeros(6)
      .u8(255)
      .zeros(5);
    inner = Buffer.concat([head.done(), inner]);
  }
  const entry = new WireWriter()
    .u32(0x00010000)
    .zeros(4)
    .u16(40 + 8 + inner.length)
    .zeros(22)
    .u32(0x00010004)
    .zeros(4)
    .u32(4)
    .zeros(4);
  entry
    .u16(4)
    .u16(8 + inner.length)
    .zeros(4)
    .bytes(inner);
  const bytes = entry.done();
  expect(() => readList(flowsRequest(), bytes)).toThrow("deep within actions");
  expect(actionsText([])).toBe("drop");
  expect(groupText({ id: 1, type: "all", buckets: [], selection: undefined })).toBe("group_id=1,type=all");
});
