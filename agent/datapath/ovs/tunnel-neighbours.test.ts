import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type Ip, parseIp } from "../../../shared/net/ip.ts";
import type { OpenFlowRequest } from "../../protocols/openflow/mod.ts";
import { writeMessage } from "../../protocols/openflow/request.ts";
import { WireWriter } from "../../protocols/openflow/wire-writer.ts";
import { TunnelNeighbours } from "./tunnel-neighbours.ts";

const [first, second] = ["192.0.2.1", "192.0.2.2"].map((text) => parseIp(text)) as [Ip, Ip];

let ends: Ip[];
/** What was sent at a time, together. */
let posted: OpenFlowRequest[][];
let neighbours: TunnelNeighbours;

beforeEach(() => {
  vi.useFakeTimers();
  ends = [first];
  posted = [];
  neighbours = new TunnelNeighbours({
    ofport: () => 7,
    ends: () => ends,
    post: (requests) => posted.push([...requests]),
  });
});
afterEach(async () => {
  await neighbours[Symbol.asyncDispose]();
  vi.useRealTimers();
});

const counts = (): readonly number[] => posted.map((requests) => requests.length);

test("asks for a node at once, again while that may be starting, and then every five minutes", async () => {
  expect(counts()).toEqual([1]);
  await vi.advanceTimersByTimeAsync(250);
  expect(counts()).toEqual([1, 1]);
  await vi.advanceTimersByTimeAsync(750 + 4_000);
  expect(counts()).toEqual([1, 1, 1, 1]);
  await vi.advanceTimersByTimeAsync(299_999);
  expect(counts().length).toBe(4);
  await vi.advanceTimersByTimeAsync(1);
  expect(counts().length).toBe(5);
});

test("asks at once for one that comes while another is still asked for, and keeps to the times of both", async () => {
  await vi.advanceTimersByTimeAsync(1_100);
  ends.push(second);
  neighbours.look();
  await vi.advanceTimersByTimeAsync(0);
  expect(counts()).toEqual([1, 1, 1, 1]);
  await vi.advanceTimersByTimeAsync(250);
  expect(counts().length).toBe(5);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(counts().reduce((sum, count) => sum + count, 0)).toBe(8);
});

test("asks for all again when the switch has forgotten them, and for nobody who has gone", async () => {
  ends.push(second);
  await vi.advanceTimersByTimeAsync(6_000);
  const before = posted.length;
  neighbours.forget();
  await vi.advanceTimersByTimeAsync(0);
  expect(counts().slice(before)).toEqual([2]);
  ends = [second];
  await vi.advanceTimersByTimeAsync(250);
  expect(counts().slice(before)).toEqual([2, 1]);
});

test("says by the tunnel's address which of them", () => {
  const writer = new WireWriter();
  for (const request of posted[0] ?? []) writeMessage(writer, request, 1);
  const bytes = Buffer.from(writer.done());
  expect(bytes.includes(Buffer.from([192, 0, 2, 1]))).toBe(true);
  expect(bytes.includes(Buffer.from([192, 0, 2, 2]))).toBe(false);
});
