import { afterEach, beforeEach, expect, test } from "vitest";
import type { NodeTrace } from "../../shared/documents/mod.ts";
import { createLogger } from "../../shared/log.ts";
import type { PacketTrace, PacketTracing } from "../datapath/tracing.ts";
import { TraceSessions } from "./trace-sessions.ts";

const never = new AbortController().signal;
let ended: number;
let change: PromiseWithResolvers<void>;
let trace: { -readonly [K in keyof PacketTrace]: PacketTrace[K] };
const logger = createLogger("error", () => undefined);
const sources = { node: "a", dataPath: "bridge", hasSwitch: false, logger } as const;
let tracing: PacketTracing | undefined;
let sessions: TraceSessions;

beforeEach(() => {
  ended = 0;
  change = Promise.withResolvers();
  trace = {
    ...{ revision: 1, ended: undefined, packets: [], passed: 0, paused: false },
    changed: () => change.promise,
    [Symbol.asyncDispose]: async () => void ended++,
  };
  tracing = { title: "encap", start: async () => trace };
  sessions = new TraceSessions({ ...sources, tracing: () => tracing });
});
afterEach(() => sessions[Symbol.asyncDispose]());

const ask = async (request: unknown): Promise<NodeTrace> => {
  const json = new TextEncoder().encode(typeof request === "string" ? request : JSON.stringify(request));
  return JSON.parse(new TextDecoder().decode(await sessions.answer(json, "ann", never)));
};
const start = { t: "start", probe: "00112233445566778899aabbccddeeff", role: "live", seconds: 5, sourcePod: "x/y" };

test("a trace is begun, told of when it changes, and ended by whoever began it", async () => {
  const { session, revision } = await ask(start);
  const waiting = ask({ t: "collect", session, after: revision, waitMs: 20_000 });
  trace.revision = 2;
  change.resolve();
  expect(await waiting).toMatchObject({ kind: "node-trace", node: "a", state: "looking", revision: 2 });
  await ask({ t: "end", session });
  expect(ended).toBe(1);
  await expect(ask({ t: "collect", session, after: 0, waitMs: 0 })).rejects.toThrow("no trace of that name any more");
});

test("traces end with the agent", async () => {
  await ask(start);
  await sessions[Symbol.asyncDispose]();
  expect(ended).toBe(1);
});

test.each([
  ["no JSON", "{", "it is no JSON"],
  ["nothing to do", { t: "stop" }, '"t" is "stop"'],
  ["no probe", { ...start, probe: "00" }, "wanted 32 hexadecimal digits"],
  ["hours", { ...start, seconds: 3_600 }, '"seconds" is 3600'],
  ["an endless wait", { t: "collect", session: "x", after: 0, waitMs: 1e9 }, '"waitMs" is 1000000000'],
  ["too many addresses", { ...start, source: Array.from({ length: 33 }, () => "10.0.0.1") }, "a list of 33 entries"],
  ["a book", "x".repeat(40_000), "it has 40000 bytes"],
])("%s is refused in a sentence", async (_, request, wanted) => {
  await expect(ask(request)).rejects.toThrow(wanted);
});

test.each([
  ["bridge", '"nft list table bridge pipette-BRIDGE"'],
  ["hns", "pktmon"],
] as const)("a data path %s that follows nothing says so, and what to use instead", async (dataPath, instead) => {
  await using one = new TraceSessions({ ...sources, dataPath, tracing: () => undefined });
  const asked = one.answer(new TextEncoder().encode(JSON.stringify(start)), "ann", never);
  await expect(asked).rejects.toThrow(
    `the data path "${dataPath}" of node "a" follows no packets, wanted one with "ovs"; "pipette policy why FROM TO`,
  );
  await expect(asked).rejects.toThrow(instead);
});

test("a switch that is not set up yet is another matter", async () => {
  await using one = new TraceSessions({ ...sources, dataPath: "ovs", hasSwitch: true, tracing: () => undefined });
  await expect(one.answer(new TextEncoder().encode(JSON.stringify(start)), "ann", never)).rejects.toThrow(
    'the data path of node "a" is not set up yet',
  );
});

test("more than people look at in a minute are refused", async () => {
  for (let i = 0; i < 120; i++) await ask(start);
  await expect(ask(start)).rejects.toThrow('120 were begun on node "a" within a minute');
});
