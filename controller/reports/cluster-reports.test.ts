import { afterEach, expect, test } from "vitest";
import { type ApiClient, ApiError, type ApiObject } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { eventually } from "../../test/support/eventually.ts";
import type { Changes } from "../policy/mod.ts";
import { ClusterReports, readHanded, reportsPath } from "./cluster-reports.ts";
import type { Holder } from "./status-lease.ts";

/** Controllers by their names; which of them holds the Lease; what keeps requests from the holder. */
const all = new Map<string, ClusterReports>();
let holder: string | undefined;
let refusal: number | "lost" | undefined;
let requests = 0;
afterEach(async () => {
  for (const each of all.values()) await each[Symbol.asyncDispose]();
  all.clear();
  refusal = undefined;
  requests = 0;
});

const holderFor = (name: string): Holder => {
  if (holder === undefined) return { t: "nobody known" };
  return holder === name ? { t: "this one" } : { t: "another", identity: `${holder}_1`, address: holder };
};

/** As the holder's API answers. */
function answer(address: string, path: string, body?: object): ApiObject {
  requests++;
  if (typeof refusal === "number") throw new ApiError({ action: "ask", is: "it refuses", status: refusal });
  const there = all.get(address);
  if (there === undefined) throw new ApiError({ action: "ask", is: "nobody is there" });
  if (body === undefined && path === reportsPath)
    return { items: [...there.trafficHere()].map(([uid, traffic]) => ({ uid, ...traffic })) };
  if (body === undefined) return { nodes: there.nodesHere(path.slice(reportsPath.length + 1)) };
  const untaken = there.take(readHanded(JSON.parse(JSON.stringify(body))));
  if (refusal === "lost") throw new ApiError({ action: "ask", is: "the answer is lost" });
  return { untaken };
}

function replica(name: string): ClusterReports {
  const made = new ClusterReports({
    get holder() {
      return holderFor(name);
    },
    connect: (address) =>
      ({
        create: async ({ path }: { path: string }, body: object) => answer(address, path, body),
        get: async ({ path }: { path: string }) => answer(address, path),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }) as unknown as ApiClient,
    logger: createLogger("error", () => undefined),
  });
  all.set(name, made);
  return made;
}
function hold(name: string | undefined): void {
  holder = name;
  for (const each of all.values()) each.holderChanged();
}
const appear = (reports: ClusterReports, ...uids: readonly string[]): void =>
  reports.follow({
    policies: uids.map((uid) => ({ t: "added", policy: { uid }, nodes: { left: [] }, span: { has: () => true } })),
  } as unknown as Pick<Changes, "policies">);
const report = (nodeName: string, message = "") => ({
  nodeName,
  generation: 1,
  realizationFailure: message !== "",
  message,
});
const packets = (count: number) => ({ packets: count, bytes: 10 * count, sessions: count });
const names = async (of: ClusterReports, uid = "p") => (await of.nodesOf(uid)).map(({ nodeName }) => nodeName).sort();

test("every controller answers what the nodes of all of them have told", async () => {
  const [a, b, c] = ["a", "b", "c"].map(replica) as [ClusterReports, ClusterReports, ClusterReports];
  for (const each of [a, b, c]) appear(each, "p");
  hold("a");
  a.enforced("p", report("n1"));
  b.enforced("p", report("n2"));
  c.enforced("p", report("n3", "no room"));
  for (const each of [a, b, c]) each.count("p", packets(2));
  await eventually(async () => (await names(a)).length === 3, "all reports");
  for (const each of [a, b, c]) {
    expect(await names(each)).toEqual(["n1", "n2", "n3"]);
    expect(await each.traffic()).toEqual(new Map([["p", packets(6)]]));
  }
  // What is known is not handed on again.
  const before = requests;
  b.holderChanged();
  await Bun.sleep(50);
  expect(requests).toBe(before);
});

test("another holder is told all that each of them knows, and a node's newest report holds", async () => {
  const [a, b] = [replica("a"), replica("b")];
  for (const each of [a, b]) appear(each, "p");
  hold("a");
  b.enforced("p", report("n1"));
  a.enforced("p", report("n2"));
  await eventually(async () => (await names(a)).length === 2, "both");
  await Bun.sleep(2);
  // The node has another controller now.
  a.enforced("p", report("n1", "no room"));
  const c = replica("c");
  appear(c, "p");
  hold("c");
  await eventually(async () => (await names(c)).length === 2, "what both know");
  expect((await c.nodesOf("p")).find(({ nodeName }) => nodeName === "n1")?.message).toBe("no room");
});

test("a policy that the holder does not know yet is told to it again", async () => {
  const [a, b] = [replica("a"), replica("b")];
  appear(b, "p", "q");
  appear(a, "q");
  hold("a");
  b.enforced("p", report("n1"));
  b.enforced("q", report("n1"));
  await eventually(async () => (await names(a, "q")).length === 1, "the one that is known");
  appear(a, "p");
  b.holderChanged();
  await eventually(async () => (await names(a, "p")).length === 1, "the other one");
});

test("more than one request takes is told in several", async () => {
  const [a, b] = [replica("a"), replica("b")];
  for (const each of [a, b]) appear(each, "p", "q");
  hold(undefined);
  for (let i = 0; i < 400; i++) for (const uid of ["p", "q"]) b.enforced(uid, report(`n${i}`));
  hold("a");
  await eventually(async () => (await names(a, "q")).length === 400, "all nodes");
  expect([(await names(a, "p")).length, requests]).toEqual([400, 2]);
});

test("without a holder nobody answers half of it, and what was told is not lost", async () => {
  const [a, b] = [replica("a"), replica("b")];
  for (const each of [a, b]) appear(each, "p");
  hold(undefined);
  b.enforced("p", report("n2"));
  b.count("p", packets(3));
  await expect(b.nodesOf("p")).rejects.toMatchObject({ status: 503, retryAfterS: 5 });
  await expect(b.traffic()).rejects.toMatchObject({ status: 503 });
  expect(() => b.take([])).toThrow(expect.objectContaining({ status: 409 }));
  expect(() => b.nodesHere("p")).toThrow(expect.objectContaining({ status: 409 }));
  hold("b");
  expect(await names(b)).toEqual(["n2"]);
  await eventually(async () => (await b.traffic()).get("p")?.packets === 3, "the sums");
});

test("what the holder refuses is told again, and counts of a lost answer are not counted twice", async () => {
  const [a, b] = [replica("a"), replica("b")];
  for (const each of [a, b]) appear(each, "p");
  refusal = 503;
  hold("a");
  b.enforced("p", report("n2"));
  b.count("p", packets(1));
  await eventually(() => requests > 0, "an attempt");
  await expect(b.nodesOf("p")).rejects.toMatchObject({ status: 503 });
  refusal = undefined;
  await eventually(async () => (await a.traffic()).get("p")?.packets === 1, "the sums");
  expect(await names(a)).toEqual(["n2"]);
  refusal = "lost";
  const before = requests;
  b.count("p", packets(1));
  await eventually(() => requests > before, "an attempt");
  refusal = undefined;
  b.enforced("p", report("n3"));
  await eventually(async () => (await names(a)).length === 2, "the next report");
  expect((await a.traffic()).get("p")).toEqual(packets(2));
});
