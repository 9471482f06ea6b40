import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LiveValue } from "../../shared/async/live-value.ts";
import { createLogger } from "../../shared/log.ts";
import { formatIp, parseCidr } from "../../shared/net/ip.ts";
import { RecordedMeter } from "../../test/fakes/recorded-meter.ts";
import { eventually } from "../../test/support/eventually.ts";
import type { ClusterNode } from "../cluster/node-registry.ts";
import type { EchoOutcome, EchoQuestion } from "../protocols/icmp/mod.ts";
import { PeerProbes } from "./peer-probes.ts";

const cidr = (text: string) => {
  const read = parseCidr(text);
  if (read === undefined) throw new Error(text);
  return read;
};
const nodeOf = (name: string, ...subnets: readonly string[]): readonly [string, ClusterNode] => [
  name,
  { name, uid: name, addresses: [], subnets: subnets.map(cidr) },
];
const many = (count: number): readonly (readonly [string, ClusterNode])[] =>
  Array.from({ length: count }, (_, i) => nodeOf(`n${i}`, `10.${100 + (i >> 8)}.${i & 255}.0/24`));

let peers: LiveValue<ReadonlyMap<string, ClusterNode>>;
let probes: PeerProbes;
let asked: EchoQuestion[];
let meter: RecordedMeter;
let answer: (question: EchoQuestion) => EchoOutcome;
const logged: string[] = [];

const echo: EchoOutcome = { t: "answered", rttMicros: 800 };
const to = ({ to: ip }: EchoQuestion): string => formatIp(ip);

function open(nodes: readonly (readonly [string, ClusterNode])[], more: { intervalMs?: number; podMtu?: number } = {}) {
  peers = new LiveValue<ReadonlyMap<string, ClusterNode>>(new Map(nodes));
  probes = new PeerProbes({
    ...{ peers, subnets: [cidr("10.1.0.0/24"), cidr("fd00:1::/64")], intervalMs: 20, ...more },
    ask: async (question) => {
      asked.push(question);
      await Bun.sleep(0);
      return answer(question);
    },
    ...{ meter, logger: createLogger("info", (line) => logged.push(line)) },
    times: { timeoutMs: 5, againMs: 1 },
  });
}

beforeEach(() => {
  [asked, meter] = [[], new RecordedMeter()];
  logged.length = 0;
  answer = () => echo;
});
afterEach(() => probes?.[Symbol.asyncDispose]());

const until = (state: string, node = "b"): Promise<unknown> =>
  eventually(async () => probes.of(node)[0]?.state === state, `${node} to be ${state}`);

test("each node is asked at its pods' gateway from that of ours, in every family that both have", async () => {
  open([nodeOf("b", "10.2.0.0/24", "fd00:2::/64"), nodeOf("c", "10.3.0.0/24")]);
  expect(probes.counts()).toEqual({ reachable: 0, lost: 0, silent: 0, unknown: 2 });
  await eventually(async () => probes.counts().reachable === 2, "both to be reached");
  expect(new Set(asked.map((one) => `${formatIp(one.from)} ${to(one)}`))).toEqual(
    new Set(["10.1.0.1 10.2.0.1", "fd00:1::1 fd00:2::1", "10.1.0.1 10.3.0.1"]),
  );
  expect(probes.of("b").map(({ address }) => address)).toEqual(["10.2.0.1", "fd00:2::1"]);
  expect(probes.of("nobody")).toEqual([]);
  expect(meter.told).toContain("pipette_peer_probe_rtt_seconds");
});

describe("a node that does not answer", () => {
  test("is lost after three questions, for as long, and back with the first answer", async () => {
    open([nodeOf("b", "10.2.0.0/24")]);
    await until("reachable");
    const fails = asked.length;
    answer = () => ({ t: "silent" });
    await until("lost");
    expect(asked.length - fails).toBeGreaterThanOrEqual(3);
    const [{ failures, lostSinceMs = 0, seenAtMs = 0, reason, rttMicros } = { failures: 0 }] = probes.of("b");
    expect({ failures, reason, rttMicros }).toMatchObject({ reason: "nothing comes back", rttMicros: 800 });
    expect(failures).toBeGreaterThanOrEqual(3);
    expect(lostSinceMs).toBeGreaterThanOrEqual(seenAtMs);
    expect(probes.troubles()).toMatchObject([{ node: "b", state: "lost", sinceMs: lostSinceMs }]);
    expect(meter.told.filter((one) => one === "pipette_peer_probe_failures_total").length).toBe(failures);
    answer = () => echo;
    await until("reachable");
    expect(probes.of("b")[0]).toMatchObject({ failures: 0 });
    expect(probes.of("b")[0]).not.toHaveProperty("reason");
    expect(probes.troubles()).toEqual([]);
    const said = logged.filter((line) => line.includes("10.2.0.1"));
    expect(said).toHaveLength(2);
  });

  test("and never has is told apart, with what the kernel says", async () => {
    answer = () => ({ t: "refused", errno: 101 });
    open([nodeOf("b", "10.2.0.0/24")]);
    await until("silent");
    expect(probes.troubles()[0]?.message).toBe(
      'this node has never reached the pods of node "b" (gateway 10.2.0.1) since its start: this node has no route to it',
    );
  });

  test("once is no loss", async () => {
    let count = 0;
    answer = () => (++count === 2 || count === 3 ? { t: "silent" } : echo);
    open([nodeOf("b", "10.2.0.0/24")]);
    await eventually(async () => count > 6, "some questions");
    expect(probes.of("b")[0]?.state).toBe("reachable");
    expect(logged.join()).not.toContain("not reached");
  });

  test("of one family alone is lost as a whole", async () => {
    answer = ({ to: { family } }) => (family === 6 && asked.length > 4 ? { t: "silent" } : echo);
    open([nodeOf("b", "10.2.0.0/24", "fd00:2::/64")]);
    await eventually(async () => probes.counts().lost === 1, "it to be lost");
    expect(probes.of("b").map(({ state }) => state)).toEqual(["reachable", "lost"]);
  });
});

test("where large packets vanish the largest that comes through is found, and forgotten once they do not", async () => {
  let fits = 1_378;
  answer = ({ wholeBytes = 0 }) => (wholeBytes > fits ? { t: "silent" } : echo);
  open([nodeOf("b", "10.2.0.0/24")], { podMtu: 1_450 });
  await eventually(async () => probes.of("b")[0]?.mtu !== undefined, "the width to be known", 30_000);
  expect(probes.of("b")[0]).toMatchObject({ state: "reachable", mtu: 1_378, podMtu: 1_450 });
  expect(probes.troubles()).toMatchObject([{ state: "mtu", message: expect.stringMatching(/wanted "mtu: 1378"/) }]);
  fits = 9_000;
  await eventually(async () => probes.troubles().length === 0, "it to be wide again");
  // Rarely: not with each answer.
  const before = asked.length;
  await eventually(async () => asked.length > before + 20, "more questions");
  const later = asked.slice(before);
  expect(later.filter(({ wholeBytes }) => wholeBytes !== undefined).length).toBeLessThan(later.length / 3);
});

test("of more nodes than a round has time for each round takes the next ones", async () => {
  open(many(300), { intervalMs: 200 });
  expect(probes.about).toBe("4 of 300 ways every 0.2 s, one after another");
  await eventually(async () => asked.length >= 16, "some rounds");
  const order = asked.slice(0, 16).map(to);
  expect(order).toEqual(Array.from({ length: 16 }, (_, i) => `10.100.${i}.1`));
});

test("nodes that go are forgotten, and one whose subnet changes is asked anew", async () => {
  open([nodeOf("b", "10.2.0.0/24"), nodeOf("c", "10.3.0.0/24")]);
  await until("reachable");
  await until("reachable", "c");
  const before = probes.of("b")[0]?.seenAtMs;
  answer = () => ({ t: "silent" });
  peers.set(new Map([nodeOf("b", "10.2.0.0/24"), nodeOf("d", "10.4.0.0/24")]));
  await eventually(async () => probes.of("d").length === 1, "the new one to be known");
  expect(probes.of("c")).toEqual([]);
  expect(probes.of("b")[0]?.seenAtMs ?? 0).toBeGreaterThanOrEqual(before ?? 1);
  peers.set(new Map([nodeOf("b", "10.9.0.0/24")]));
  await eventually(async () => probes.of("b")[0]?.address === "10.9.0.1", "the other gateway");
  await until("silent");
});

test("where nothing can be asked at all it says so once, and nobody is lost", async () => {
  answer = () => {
    throw new Error("this process may not");
  };
  open([nodeOf("b", "10.2.0.0/24")]);
  await eventually(async () => asked.length > 3, "some attempts");
  expect(probes.about).toBe("not possible: this process may not");
  expect(probes.counts()).toMatchObject({ unknown: 1, lost: 0 });
  expect(logged.filter((line) => line.includes("not probed"))).toHaveLength(1);
});
