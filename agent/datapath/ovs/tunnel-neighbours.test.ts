import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { formatIp, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { bytesOf } from "../../../test/fakes/openflow/requests.ts";
import type { OpenFlowRequest } from "../../protocols/openflow/mod.ts";
import { TunnelNeighbours } from "./tunnel-neighbours.ts";

const [first, second] = ["192.0.2.1", "192.0.2.2"].map((text) => parseIp(text)) as [Ip, Ip];

let ends: Ip[];
/** What was sent at a time, together. */
let posted: OpenFlowRequest[][];
/** What the switch says when it is asked. */
let known: () => Promise<ReadonlySet<string>>;
let neighbours: TunnelNeighbours;

beforeEach(() => {
  vi.useFakeTimers();
  ends = [first];
  known = () => Promise.resolve(new Set());
  posted = [];
  neighbours = new TunnelNeighbours({
    ofport: () => 7,
    ends: () => ends,
    post: (requests) => posted.push([...requests]),
    known: () => known(),
  });
});
afterEach(async () => {
  await neighbours[Symbol.asyncDispose]();
  vi.useRealTimers();
});

const counts = (): readonly number[] => posted.map((requests) => requests.length);

/** Milliseconds to the next common round, which may be now. */
const untilRound = (): number => 10_000 - (performance.now() % 10_000);
/** How many packets that were. */
const sent = (): number => counts().reduce((sum, count) => sum + count, 0);

test("asks for a node until the switch knows it, and then every five minutes", async () => {
  expect(counts()).toEqual([1]);
  await vi.advanceTimersByTimeAsync(100);
  expect(counts()).toEqual([1, 1]);
  known = () => Promise.resolve(new Set(["192.0.2.1"]));
  await vi.advanceTimersByTimeAsync(100 + 299_999);
  expect(counts()).toEqual([1, 1]);
  await vi.advanceTimersByTimeAsync(untilRound());
  expect(counts()).toEqual([1, 1, 1]);
  // Whom the switch has forgotten meanwhile is asked for again.
  known = () => Promise.resolve(new Set());
  await vi.advanceTimersByTimeAsync(100);
  expect(counts()).toEqual([1, 1, 1, 1]);
});

test.each([
  ["does not know it", () => Promise.resolve(new Set<string>())],
  ["cannot be asked", () => Promise.reject(new Error("there is no socket"))],
])("asks for a node often while that may be starting, then seldom, where the switch %s", async (_, answer) => {
  known = answer;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(sent()).toBe(1 + 20);
  await vi.advanceTimersByTimeAsync(8_000);
  expect(sent()).toBe(1 + 20 + 8);
  await vi.advanceTimersByTimeAsync(299_999);
  expect(sent()).toBe(29);
  await vi.advanceTimersByTimeAsync(untilRound());
  expect(sent()).toBe(30);
});

test("asks the switch once for all nodes that have come within ten seconds", async () => {
  let looks = 0;
  known = () => {
    looks++;
    return Promise.resolve(new Set(ends.map(formatIp)));
  };
  await vi.advanceTimersByTimeAsync(untilRound() + 1_000);
  for (let i = 0; i < 8; i++) {
    ends.push({ family: 4, value: 0x0a000000n + BigInt(i) } as Ip);
    neighbours.refresh();
    await vi.advanceTimersByTimeAsync(1_000);
  }
  const [before, packets] = [looks, sent()];
  await vi.advanceTimersByTimeAsync(300_000 + untilRound() + 1_000);
  expect([looks - before, sent() - packets]).toEqual([2, 9]);
});

test("asks for a thousand nodes at most a thousand times a second, and the last of them as often as one alone", async () => {
  ends = Array.from({ length: 1_000 }, (_, i) => ({ family: 4, value: 0x0a000000n + BigInt(i) }) as Ip);
  neighbours.refresh();
  await vi.advanceTimersByTimeAsync(0);
  const before = sent();
  await vi.advanceTimersByTimeAsync(999);
  expect(sent()).toBe(before);
  known = () => Promise.resolve(new Set(ends.slice(1).map(formatIp)));
  await vi.advanceTimersByTimeAsync(1);
  expect(sent()).toBe(before + 1);
  await vi.advanceTimersByTimeAsync(100);
  expect(sent()).toBe(before + 2);
});

test("asks at once for one that comes while the switch does not answer", async () => {
  known = () => new Promise(() => undefined);
  await vi.advanceTimersByTimeAsync(100);
  expect(counts()).toEqual([1]);
  ends.push(second);
  neighbours.refresh();
  await vi.advanceTimersByTimeAsync(0);
  expect(counts()).toEqual([1, 2]);
});

test("ends while the switch does not answer, and sends nothing more", async () => {
  known = () => new Promise(() => undefined);
  await vi.advanceTimersByTimeAsync(100);
  await neighbours[Symbol.asyncDispose]();
  expect(counts()).toEqual([1]);
});

test("asks for all again when the switch has forgotten them, and for nobody who has gone", async () => {
  ends.push(second);
  await vi.advanceTimersByTimeAsync(20_000);
  const before = posted.length;
  neighbours.reset();
  await vi.advanceTimersByTimeAsync(0);
  expect(counts().slice(before)).toEqual([2]);
  ends = [second];
  await vi.advanceTimersByTimeAsync(100);
  expect(counts().slice(before)).toEqual([2, 1]);
});

test("says by the tunnel's address which of them", () => {
  const bytes = bytesOf(posted[0] ?? []);
  expect(bytes.includes(Buffer.from([192, 0, 2, 1]))).toBe(true);
  expect(bytes.includes(Buffer.from([192, 0, 2, 2]))).toBe(false);
});
