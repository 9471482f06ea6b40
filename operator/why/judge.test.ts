import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { DocumentCall, DocumentPod, NodeDocument } from "../../shared/documents/mod.ts";
import type { Facts, Statement } from "./facts.ts";
import { judge, verdictText } from "./judge.ts";
import { symptomOf, symptoms } from "./symptoms.ts";

const nowMs = 1_000_000;
const pod = { namespace: "shop", name: "cart" };
const agent = { problems: [] } as unknown as NodeDocument;
const call = (changes: Partial<DocumentCall>): DocumentCall => ({
  ...{ verb: "ADD", network: "pods", containerId: "c1", ifname: "eth0", beganAtMs: nowMs - 5_000, tookMicros: 900 },
  ...{ code: 0, phases: [] },
  ...changes,
});
const attachment: DocumentPod = {
  ...{ network: "pods", containerId: "c1", ifname: "eth0", hostIfname: "cart-1", ownLease: true },
  addresses: ["10.1.0.5/24"],
};
const said = (by: Statement["by"], text: string, changes: Partial<Statement> = {}): Statement => ({
  ...{ by, from: by, text, isOfPod: by === "call" || by === "event" },
  ...changes,
});
const facts = (changes: Partial<Facts> = {}): Facts => ({
  ...{ pod, nowMs, state: undefined, node: "a", statements: [], calls: [], attachments: [], leases: [], pools: [] },
  ...{ isolation: [], agent, runtime: undefined, findings: [], asked: [{ source: "the agent" }] },
  ...changes,
});
const noAddress =
  'Cannot allocate an address: range set "10.1.0.0/29" of network "pods" has 0 of 5 addresses free, wanted at least 1';

describe("the verdict", () => {
  test("follows the agent's own word of the last ADD, with its numbers", () => {
    const pools = [
      { network: "pods", range: "10.1.0.1-10.1.0.6", total: "5", allocated: 5, releasing: 0, cooling: 0, free: "0" },
    ];
    const told = facts({
      calls: [call({ code: 101, message: noAddress })],
      statements: [said("call", noAddress, { times: 41, atMs: nowMs - 5_000 })],
      pools: pools as unknown as Facts["pools"],
    });
    const verdict = judge(told);
    expect(verdict).toMatchObject({ t: "cause", code: "pool-exhausted" });
    expect(verdictText(verdict, told)).toMatch(
      /^shop\/cart has no network: no address of its network is free on the node\.\n {2}call, 5 s ago, 41 times: Cannot allocate.*\n {2}addresses: of 5 .* none is free\ndo: {2}.*\n/,
    );
  });

  test("takes a pod's witness before its node's, and a log last", () => {
    const heard = [
      said("log", "connections were ended to make room for others"),
      said("problem", "Cannot give a pod an address: the node was released"),
      said("event", 'Cannot serve network "x": the agent has "pods", wanted one of these'),
    ];
    expect(judge(facts({ statements: heard })).code).toBe("network-unknown");
    expect(judge(facts({ statements: heard.slice(0, 2) })).code).toBe("record-refused");
    expect(judge(facts({ statements: heard.slice(0, 1) })).code).toBe("connections-ended");
  });

  test("takes a crowd for what keeps an agent from answering, and not for what has ended one", () => {
    const crowd = said("log", "connections were ended to make room for others");
    const hangs = said("agent", "it gives no answer within 5 s");
    const away = said("agent", "nobody listens at the socket");
    expect(judge(facts({ agent: undefined, statements: [hangs, crowd] })).code).toBe("connections-ended");
    expect(judge(facts({ agent: undefined, statements: [away, crowd] })).code).toBe("agent-away");
    const gone = said("log", "Cannot be reached any more: the socket is gone");
    expect(judge(facts({ agent: undefined, statements: [hangs, gone] })).code).toBe("agent-hangs");
    expect(judge(facts({ agent: undefined, statements: [away, gone] })).code).toBe("socket-gone");
  });

  test("does not hold against a pod what failed before its last success", () => {
    const statements = [said("event", noAddress, { atMs: nowMs - 60_000 })];
    const up = facts({ statements, calls: [call({})], attachments: [attachment] });
    expect(judge(up)).toMatchObject({ t: "fine", cause: expect.stringContaining("10.1.0.5/24") });
    // And the other way round.
    const calls = [call({ code: 101, beganAtMs: nowMs - 1_000 }), call({})];
    const later = facts({
      statements: [said("call", noAddress, { atMs: nowMs - 1_000 })],
      calls,
      attachments: [attachment],
    });
    expect(judge(later).code).toBe("pool-exhausted");
  });

  test("tells a sentence that it does not know as it is, and never calls the pod well", () => {
    const verdict = judge(facts({ statements: [said("call", "the moon is full")] }));
    expect(verdict).toMatchObject({ t: "cause", code: "said", cause: "shop/cart has no network: the moon is full" });
  });

  test("of a pod that is up: what names it, then who isolates it", () => {
    const up = { calls: [call({})], attachments: [attachment] };
    const finding = said("finding", '"eth0" of "c1" has no flows', {
      code: "port-without-pod",
      todo: "repair",
      isOfPod: true,
    });
    expect(judge(facts({ ...up, statements: [finding] }))).toMatchObject({
      code: "port-without-pod",
      todo: ["repair"],
    });
    const ofOthers = { ...finding, isOfPod: false };
    expect(judge(facts({ ...up, statements: [ofOthers] })).t).toBe("fine");
    const isolation = [
      { network: "pods", containerId: "c1", ifname: "eth0", directions: ["ingress" as const], policies: ["shop/deny"] },
    ];
    expect(judge(facts({ ...up, isolation }))).toMatchObject({
      code: "isolated",
      cause: expect.stringContaining("isolate it by shop/deny: of its ingress only"),
    });
  });

  test("of a pod whose own state is the answer", () => {
    const state = { uid: "u", phase: "Pending", hostNetwork: false, isLeaving: false, addresses: [] };
    expect(judge(facts({ state: "absent" })).t).toBe("absent");
    expect(judge(facts({ state: { ...state, unscheduled: "0/3 nodes are available" } }))).toMatchObject({
      code: "not-scheduled",
      evidence: ["the scheduler: 0/3 nodes are available"],
    });
    expect(judge(facts({ state: { ...state, node: "a", hostNetwork: true } })).code).toBe("host-network");
    expect(judge(facts({ state: { ...state, phase: "Succeeded" } })).code).toBe("ended");
    expect(judge(facts({ state: { ...state, node: "a" } })).code).toBe("no-call");
  });

  test("says that it cannot tell, rather than that all is well, where nobody could be asked", () => {
    const asked = [{ source: "the agent", failure: "it is away" }];
    expect(judge(facts({ agent: undefined, asked })).t).toBe("unknown");
    const asker = said("agent", 'Cannot ask the agent at "/s": this user may not connect (EACCES), wanted root');
    expect(judge(facts({ agent: undefined, statements: [asker] }))).toMatchObject({ t: "unknown", code: "not-root" });
    const { pod: _, ...node } = facts();
    expect(judge(node).t).toBe("fine");
  });
});

describe("the table of symptoms in docs/troubleshooting.md", () => {
  const text = readFileSync("docs/troubleshooting.md", "utf8");
  const table = text.slice(text.indexOf("| what you see |"), text.indexOf("## pipette why"));
  const rows = table
    .split("\n")
    .slice(2)
    .filter((line) => line.startsWith("| "))
    .map((line) => line.split("|")[1]?.trim() ?? "");
  /** What is told from facts, and not by a sentence. */
  const others = [
    // Nobody's sentence: whoever measures calls looks there.
    "each call takes 10 ms and more, although the agent runs",
    // A lease that is releasing.
    "DEL succeeds, the interface stays",
    // Told with every pod that is up: the counters are in nftables.
    "a pod on a kernel bridge sends and nothing arrives",
    // Of ways between nodes: the pod has a network, and status and doctor tell of the way.
    '`peers: this node no longer reaches the pods of node "…"`',
    "`peers: … has never reached …`",
    "connections to other nodes open and then hang",
  ];

  test("has a symptom for each row, and each symptom a row", () => {
    const known = symptoms.flatMap(({ row }) => (row === undefined ? [] : [row]));
    expect([...known, ...others].toSorted()).toEqual([...rows].toSorted());
    expect(new Set(symptoms.map(({ code }) => code)).size).toBe(symptoms.length);
  });
});

/** What the small programs say: they are in C, and nothing else holds them to the table. */
test.each(["linux", "windows"])("the whole program that is lost has its symptom on %s too", (system) => {
  const source = readFileSync(`forward/${system}.c`, "utf8");
  const said = [...source.matchAll(/fail\("((?:start|go on)(?:\\.|" PIPETTE_WHOLE_PROGRAM "|[^"\\])*)"/g)].map(
    ([, words]) =>
      `Cannot ${words}: error 2`
        .replaceAll('\\"', '"')
        .replaceAll('" PIPETTE_WHOLE_PROGRAM "', "/usr/libexec/pipette/pipette"),
  );
  expect(said).toHaveLength(2);
  for (const text of said) expect(symptomOf(text)?.code, text).toBe("whole-program-lost");
});

test("sentences of no symptom have none", () => {
  expect(symptomOf("the moon is full")).toBeUndefined();
  expect(symptomOf("")).toBeUndefined();
});
