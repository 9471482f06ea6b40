import { appendFileSync, chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { formatIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { eventually } from "../../test/support/eventually.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { Allocator } from "../allocator.ts";
import { parseIpamConfig } from "../config/ipam-config.ts";
import { AddressHistory } from "./address-history.ts";
import { historyIn } from "./history-file.ts";
import { type KnownPeriods, knownPeriods } from "./known-periods.ts";

let scratch: ReturnType<typeof scratchDir>;
let allocator: Allocator;
let history: AddressHistory | undefined;
const problems: string[] = [];

const ipam = { type: "pipette-ipam", ranges: [[{ subnet: "10.1.0.0/29" }]] };
const conf = new Fields({ name: "pods", ipam });
const config = parseIpamConfig({ conf, network: "pods", version: "1.1.0", args: "" });
const ownerOf = (sandboxId: string) => ({ network: "pods", sandboxId, ifname: "eth0" });
const podOf = (name: string) => ({ namespace: "shop", name, uid: `uid-${name}` });

const open = (lookMs = 3_600_000): AddressHistory =>
  new AddressHistory(allocator, scratch.path, {
    ...{ networks: ["pods"], gatherMs: 1, lookMs },
    report: (problem) => problem !== undefined && problems.push(problem),
  });

beforeEach(async () => {
  scratch = scratchDir();
  problems.length = 0;
  history = undefined;
  allocator = await Allocator.open(scratch.path, { ended: (lease, wasHeld) => history?.note(lease, wasHeld) });
});
afterEach(() => {
  history?.[Symbol.dispose]();
  allocator[Symbol.dispose]();
  scratch[Symbol.dispose]();
});

const add = (name: string) => allocator.allocate(ownerOf(name), config, podOf(name));
const known = (query = {}): KnownPeriods => knownPeriods(scratch.path, allocator.list(), query);
const told = (query = {}): readonly string[] =>
  known(query).periods.map(
    ({ pod, ip, untilMs }) => `${pod?.name} ${formatIp(ip)} ${untilMs === undefined ? "has" : "had"}`,
  );
const lines = (): readonly string[] => readFileSync(historyIn(scratch.path), "utf8").trim().split("\n");

test("who has an address, and who had it, is known, also after the next agent has begun", async () => {
  history = open();
  add("a");
  add("b");
  allocator.release(ownerOf("a"), "cooling");
  history[Symbol.dispose]();
  history = open();
  expect(told()).toEqual(["b 10.1.0.3 has", "a 10.1.0.2 had"]);
  history[Symbol.dispose]();
  // What cooled at its start has been written by the one before.
  expect(lines()).toHaveLength(1);
});

test("an address has one holder after another", async () => {
  history = open();
  for (const name of ["a", "b", "c", "d", "e", "f", "g"]) {
    add(name);
    allocator.release(ownerOf(name), "cooling");
  }
  history[Symbol.dispose]();
  const ip = known().periods[0]?.ip;
  expect(told({ ip })).toEqual(["g 10.1.0.3 had", "b 10.1.0.3 had"]);
  expect(told({ pod: "shop/b" })).toEqual(["b 10.1.0.3 had"]);
  expect(told({ pod: "other/" })).toEqual([]);
  expect(told({ network: "others" })).toEqual([]);
});

test("it ends when its owner leaves, and not when its interface is gone at last", async () => {
  history = open();
  const [lease] = add("a").leases;
  const [left] = allocator.release(ownerOf("a"), "releasing");
  // Nobody has it any more, and it is not yet free.
  expect(told()).toEqual(["a 10.1.0.2 had"]);
  await Bun.sleep(20);
  allocator.endAttachment(ownerOf("a"), lease === undefined ? [] : [lease]);
  history[Symbol.dispose]();
  expect(known().periods).toMatchObject([{ fromMs: lease?.allocatedAtMs, untilMs: left?.releasedAtMs }]);
  expect(lines()).toHaveLength(1);
});

test("what a process of its own has released is found: at the start, and later", async () => {
  using other = await Allocator.open(scratch.path);
  add("a");
  other.release(ownerOf("a"), "cooling");
  history = open(5);
  add("b");
  other.release(ownerOf("b"), "cooling");
  await eventually(async () => existsSync(historyIn(scratch.path)) && lines().length === 2, "both to be written");
  await Bun.sleep(30);
  expect(lines()).toHaveLength(2);
  expect(told()).toEqual(["b 10.1.0.3 had", "a 10.1.0.2 had"]);
});

test("neither an ADD that failed nor a transaction that did is a holder", () => {
  history = open();
  allocator.undo(add("a"), "cooling");
  add("b");
  expect(() =>
    allocator.transaction(() => {
      history?.note({ ...(allocator.find(ownerOf("b"))[0] ?? never()) });
      throw new Error("no");
    }),
  ).toThrow("no");
  history.look();
  history[Symbol.dispose]();
  expect(told({ pod: "shop/b" })).toEqual(["b 10.1.0.3 has"]);
  expect(() => lines()).toThrow("ENOENT");
});

test("half a line, a line of somebody else and one that is no period are passed over", () => {
  history = open();
  add("a");
  allocator.release(ownerOf("a"), "cooling");
  history[Symbol.dispose]();
  const [line = ""] = lines();
  const wrong = [line.slice(0, 20), '{"n":1}', "null", `${line.slice(0, -1)},"f":-1}`, '"10.1.0.2"'];
  appendFileSync(historyIn(scratch.path), `${wrong.join("\n")}\n`);
  expect(told()).toEqual(["a 10.1.0.2 had"]);
  expect(known().sinceMs).toBe(known().periods[0]?.untilMs);
});

test("a file that cannot be written is reported, and nothing else suffers", () => {
  writeFileSync(historyIn(scratch.path), "");
  chmodSync(historyIn(scratch.path), 0o666);
  history = open();
  add("a");
  allocator.release(ownerOf("a"), "cooling");
  history[Symbol.dispose]();
  expect(problems).toEqual([expect.stringMatching(/^Cannot write the log ".*history\.jsonl"/)]);
  expect(told()).toEqual(["a 10.1.0.2 had"]);
});

function never(): never {
  throw new Error("there is no lease");
}
