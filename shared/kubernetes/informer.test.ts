import { describe, expect, test } from "vitest";
import { type Play, ScriptedTransport } from "../../test/fakes/kubernetes/scripted-transport.ts";
import { createLogger } from "../log.ts";
import { anonymous } from "./access.ts";
import {
  ApiClient,
  type Change,
  Informer,
  InformerPool,
  type InformerState,
  mapIn,
  objectKey,
  type Resource,
  textIn,
} from "./mod.ts";

interface Pod {
  readonly node: string;
}

const pods: Resource<Pod> = {
  version: "v1",
  plural: "pods",
  project: (object) => ({ node: textIn(mapIn(object, "spec"), "nodeName") ?? "" }),
  same: (a, b) => a.node === b.node,
};

const times = { watchMs: 60_000, answerMs: 5000, silenceMs: 5000, retryFirstMs: 1, retryMostMs: 4 };
const logged: string[] = [];
const logger = createLogger("info", (line) => void logged.push(line));

const pod = (name: string, node: string, version = 1, uid = `uid-${name}`): object => ({
  metadata: { namespace: "a", name, uid, resourceVersion: String(version) },
  spec: { nodeName: node, containers: [{ image: "x".repeat(100) }] },
});
const list = (version: number, items: readonly object[], next?: string): Play => ({
  t: "answer",
  body: { metadata: { resourceVersion: String(version), ...(next === undefined ? {} : { continue: next }) }, items },
});
const event = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`;
const bookmark = (version: number): string => event("BOOKMARK", { metadata: { resourceVersion: String(version) } });
const status = (code: number, message: string, headers: Record<string, string> = {}): Play => ({
  t: "answer",
  status: code,
  body: { kind: "Status", code, message },
  headers,
});
const quiet: Play = { t: "stream", pieces: [], ending: "go on" };
const isWatch = (path: string): boolean => path.includes("watch=true");

/** What the informer was told, in words. */
class Heard {
  readonly lines: string[] = [];
  readonly states: string[] = [];
  readonly handler = {
    changed: (changes: readonly Change<Pod>[]) => {
      for (const change of changes) this.lines.push(textOf(change));
    },
    listed: () => void this.lines.push("listed"),
    stateChanged: (state: InformerState) => void this.states.push(state.t),
  };
}

function textOf(change: Change<Pod>): string {
  if (change.t === "added") return `+${change.key} ${change.object.node}`;
  if (change.t === "deleted") return `-${change.key} ${change.old.node}`;
  return `${change.key} ${change.old.node} -> ${change.object.node}`;
}

async function until(is: () => boolean, what: string): Promise<void> {
  for (let i = 0; i < 500; i++) {
    if (is()) return;
    await Bun.sleep(10);
  }
  throw new Error(`never: ${what}`);
}

/** Plays each kind of request in turn; the last play of each goes on for ever. */
function played(lists: readonly Play[], watches: readonly Play[]) {
  let [listed, watched] = [0, 0];
  const transport = new ScriptedTransport(({ path }) => {
    const [plays, at] = isWatch(path) ? [watches, watched++] : [lists, listed++];
    return plays[Math.min(at, plays.length - 1)] ?? quiet;
  });
  const access = { server: "https://api.test", tls: async () => ({}), credentials: anonymous };
  const client = new ApiClient(access, { transport });
  const informer = new Informer(client, pods, { logger, times });
  const heard = new Heard();
  informer.subscribe(heard.handler);
  return { transport, client, informer, heard, of: (name: string) => informer.objects.get(objectKey(name, "a")) };
}

describe("an informer", () => {
  test("lists in pages, keeps what its resource keeps, and tells of each change with what was before", async () => {
    const { transport, informer, heard, of } = played(
      [list(10, [pod("x", "n1")], "next"), list(10, [pod("y", "n2")])],
      [quiet],
    );
    await informer.synced;
    expect(heard.lines).toEqual(["+a/x n1", "+a/y n2", "listed"]);
    await until(() => transport.open === 1, "a watch");
    transport.send(event("ADDED", pod("z", "n1", 11)) + event("MODIFIED", pod("x", "n3", 12)));
    transport.send(event("MODIFIED", pod("x", "n3", 13)) + event("DELETED", pod("y", "n2", 14)) + bookmark(20));
    await until(() => of("y") === undefined, "the end of y");
    expect(heard.lines.slice(3)).toEqual(["+a/z n1", "a/x n1 -> n3", "-a/y n2"]);
    expect(of("x")).toEqual({ node: "n3" });
    expect(transport.asked.slice(0, 2)).toEqual([
      "GET /api/v1/pods?limit=500",
      "GET /api/v1/pods?limit=500&continue=next",
    ]);
    const late = new Heard();
    informer.subscribe(late.handler);
    expect(late.lines).toEqual(["+a/x n3", "+a/z n1", "listed"]);
    await informer[Symbol.asyncDispose]();
    expect([transport.open, informer.state.t]).toEqual([0, "ended"]);
  });

  test("takes one of the same name with another uid for another one", async () => {
    const { transport, informer, heard } = played([list(10, [pod("x", "n1")])], [quiet]);
    await until(() => transport.open === 1, "a watch");
    transport.send(event("MODIFIED", pod("x", "n1", 11, "another")));
    await until(() => heard.lines.length === 4, "two changes");
    expect(heard.lines.slice(2)).toEqual(["-a/x n1", "+a/x n1"]);
    await informer[Symbol.asyncDispose]();
  });

  test("asks in the words of its selection", async () => {
    const { client, transport } = played([list(10, [])], [quiet]);
    const selection = { namespace: "a", labels: "app=x,tier!=y", fields: "spec.nodeName=n1" };
    const informer = new Informer(client, pods, { logger, times, selection });
    await informer.synced;
    const words = "labelSelector=app%3Dx%2Ctier%21%3Dy&fieldSelector=spec.nodeName%3Dn1";
    expect(transport.asked).toContain(`GET /api/v1/namespaces/a/pods?limit=500&${words}`);
    await until(() => transport.asked.some((line) => isWatch(line) && line.endsWith(words)), "its watch");
    await informer[Symbol.asyncDispose]();
  });

  test("a watch that breaks in mid-object goes on from the last version, and nothing is listed again", async () => {
    const half = event("ADDED", pod("y", "n2", 12)).slice(0, 40);
    const { transport, informer, heard } = played(
      [list(10, [pod("x", "n1")])],
      [
        { t: "stream", pieces: [event("ADDED", pod("v", "n1", 11)) + half], ending: new Error("reset by peer") },
        { t: "stream", pieces: [event("ADDED", pod("y", "n2", 12)), bookmark(30)], ending: "end" },
        quiet,
      ],
    );
    await until(() => transport.open === 1, "the third watch");
    expect(heard.lines).toEqual(["+a/x n1", "listed", "+a/v n1", "+a/y n2"]);
    const versions = transport.asked.map((line) => /resourceVersion=(\d+)/.exec(line)?.[1]);
    expect(versions).toEqual([undefined, "10", "11", "30"]);
    await informer[Symbol.asyncDispose]();
  });

  test.each<[string, Play]>([
    ["an answer", status(410, "too old resource version: 10 (50)")],
    [
      "the first event",
      { t: "stream", pieces: [event("ERROR", { kind: "Status", code: 410, message: "too old" })], ending: "end" },
    ],
  ])("a version that is too old, as %s of a watch, leads to a new list that is compared", async (_, gone) => {
    const { informer, heard, transport } = played(
      [list(10, [pod("x", "n1"), pod("y", "n1")]), list(60, [pod("y", "n2"), pod("z", "n1")])],
      [gone, quiet],
    );
    await until(() => transport.open === 1, "the second watch");
    expect(heard.lines).toEqual(["+a/x n1", "+a/y n1", "listed", "a/y n1 -> n2", "+a/z n1", "-a/x n1", "listed"]);
    expect(transport.asked.at(-1)).toContain("resourceVersion=60");
    await informer[Symbol.asyncDispose]();
  });

  test("a new list that breaks off takes nothing away, wherever it breaks off", async () => {
    const gone = status(410, "the provided continue parameter is too old");
    const { informer, heard, transport } = played(
      [
        list(10, [pod("x", "n1"), pod("y", "n1")]),
        list(60, [pod("y", "n2")], "a"),
        gone,
        { t: "break", error: new Error("connection refused") },
        list(70, [pod("y", "n3")], "a"),
        list(70, [pod("z", "n1")]),
      ],
      [status(410, "too old"), quiet],
    );
    await until(() => transport.open === 1, "the second watch");
    expect(heard.lines.slice(3)).toEqual(["a/y n1 -> n2", "a/y n2 -> n3", "+a/z n1", "-a/x n1", "listed"]);
    await informer[Symbol.asyncDispose]();
  });

  test.each<[string, Play, string]>([
    ["a server that has no time", status(503, "etcd is not ready"), "the API server answers 503: etcd is not ready"],
    ["a refusal", status(403, "pods is forbidden"), "403: pods is forbidden, wanted the right to list pods"],
    ["no access", status(401, "Unauthorized"), "401: Unauthorized, wanted a token or a certificate that it accepts"],
    ["no JSON", { t: "stream", pieces: ["<html>"], ending: "end" }, 'the answer is no JSON: "<html>"'],
    ["a list without version", { t: "answer", body: { items: [] } }, "the list of pods has no resourceVersion"],
    ["half an answer", { t: "stream", pieces: ['{"metadata":{'], ending: new Error("cut") }, "Cannot list pods: cut"],
    ["nobody", { t: "break", error: Object.assign(new Error("x"), { code: "ECONNREFUSED" }) }, "nobody listens at"],
  ])("says what is wrong, and works once it is not: %s", async (_, fault, is) => {
    const { informer, heard } = played([fault, fault, list(10, [pod("x", "n1")])], [quiet]);
    const errors: string[] = [];
    informer.subscribe({
      changed: () => undefined,
      stateChanged: (state) => void (state.t === "failing" && errors.push(state.error.message)),
    });
    await informer.synced;
    await until(() => informer.state.t === "watching", "a watch");
    expect(errors).toEqual([expect.stringContaining(is), expect.stringContaining(is)]);
    expect(heard.states).toEqual(["failing", "failing", "watching"]);
    await informer[Symbol.asyncDispose]();
  });

  test("waits for as long as a server wants that has too much to do", async () => {
    const { informer } = played([status(429, "too many requests", { "retry-after": "1" }), list(10, [])], [quiet]);
    const before = performance.now();
    await informer.synced;
    expect(performance.now() - before).toBeGreaterThan(950);
    await informer[Symbol.asyncDispose]();
  });

  test.each<[string, string]>([
    ["no JSON", "{\n"],
    ["no object", "[]\n"],
    ["no type", "{}\n"],
    ["no version", event("ADDED", { metadata: { name: "y" } })],
    ["a line without end", "x".repeat(5 * 1024 * 1024)],
    ["an error", event("ERROR", { kind: "Status", code: 500, message: "etcd is gone" })],
  ])("of garbage in a watch takes what came before it, and goes on behind that: %s", async (_, garbage) => {
    const { informer, transport, of } = played(
      [list(10, [])],
      [{ t: "stream", pieces: [event("ADDED", pod("x", "n1", 11)), garbage], ending: "go on" }, quiet],
    );
    await until(() => transport.asked.length >= 3, "the second watch");
    expect(of("x")).toEqual({ node: "n1" });
    expect(transport.asked[2]).toContain("resourceVersion=11");
    await informer[Symbol.asyncDispose]();
  });

  test("a watch that falls silent, or never begins, is given up", async () => {
    const access = { server: "https://api.test", tls: async () => ({}), credentials: anonymous };
    for (const fault of [quiet, { t: "mute" } as const]) {
      const transport = new ScriptedTransport(({ path }) => (isWatch(path) ? fault : list(10, [])));
      const client = new ApiClient(access, { transport });
      const impatient = { ...times, answerMs: 40, silenceMs: 40 };
      const informer = new Informer(client, pods, { logger, times: impatient });
      const errors: string[] = [];
      informer.subscribe({
        changed: () => undefined,
        stateChanged: (state) => void (state.t === "failing" && errors.push(state.error.is)),
      });
      await until(() => errors.length > 2, "three faults");
      const is = fault === quiet ? "was silent for 40 ms" : "gave no answer within 40 ms";
      expect(new Set(errors)).toEqual(new Set([`the API server ${is}`]));
      await informer[Symbol.asyncDispose]();
    }
  });

  test("a handler that throws is told of, and the others hear all the same", async () => {
    const { informer, heard, transport } = played([list(10, [pod("x", "n1")])], [quiet]);
    logged.length = 0;
    informer.subscribe({
      changed: () => {
        throw new Error("a defect");
      },
    });
    const last = new Heard();
    informer.subscribe(last.handler);
    await informer.synced;
    expect([heard.lines, last.lines]).toEqual([
      ["+a/x n1", "listed"],
      ["+a/x n1", "listed"],
    ]);
    expect(logged.join()).toContain("a defect");
    await until(() => transport.open === 1, "a watch all the same");
    await informer[Symbol.asyncDispose]();
  });

  test("ends while it lists, while nobody answers, and between two attempts", async () => {
    for (const play of [{ t: "mute" } as const, status(500, "x")]) {
      const { informer } = played([play], [quiet]);
      const synced = informer.synced.then(
        () => "synced",
        () => "ended",
      );
      await Bun.sleep(5);
      await informer[Symbol.asyncDispose]();
      await informer[Symbol.asyncDispose]();
      expect(await synced).toBe("ended");
    }
  });
});

test("those who want the same share one informer, which ends with the last of them", async () => {
  const { client, transport, informer } = played([list(10, [pod("x", "n1")])], [quiet]);
  await informer[Symbol.asyncDispose]();
  transport.asked.length = 0;
  await using pool = new InformerPool(client, { logger, times });
  const first = pool.lease(pods);
  const second = pool.lease(pods, {});
  const other = pool.lease(pods, { namespace: "b" });
  expect([second.informer === first.informer, other.informer === first.informer]).toEqual([true, false]);
  await Promise.all([first.informer.synced, other.informer.synced]);
  await until(() => transport.open === 2, "two watches");
  await first[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  expect([transport.open, second.informer.state.t]).toEqual([2, "watching"]);
  await second[Symbol.asyncDispose]();
  expect([transport.open, second.informer.state.t]).toEqual([1, "ended"]);
  const again = pool.lease(pods);
  await again.informer.synced;
  expect(again.informer).not.toBe(first.informer);
});
