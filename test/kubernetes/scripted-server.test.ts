import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ScriptedApiServer } from "../../agent/cluster/kubernetes/scripted-api-server.ts";
import { isObject } from "../../shared/schema/json-fields.ts";
import { describeWith } from "../support/requires.ts";
import { ApiServer } from "./api-server.ts";
import { type Asked, type Ending, type Exchange, exchange } from "./raw-exchange.ts";
import { addNode, removeNode, setAddress } from "./registry-node.ts";

/** Two answers to the same request. */
interface Pair {
  readonly real: Exchange;
  readonly played: Exchange;
}

describeWith("the API server that unit tests play, against a real one", ["kube-apiserver", "etcd", "openssl"], () => {
  let real: ApiServer;
  let played: ScriptedApiServer;

  beforeAll(async () => {
    real = await ApiServer.start();
    const { cert, key } = real.certificates.pair("server");
    played = await ScriptedApiServer.start({ cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") });
    for (const [i, name] of ["a", "b", "c"].entries()) await add(name, i);
  });
  afterAll(async () => {
    await played?.[Symbol.asyncDispose]();
    await real?.[Symbol.asyncDispose]();
  });

  let names = 0;
  const fresh = (): string => `fresh-${++names}`;
  const steps = (name: string, number: number) => {
    const [address, podCidr] = [`192.0.2.${number}`, `10.80.${number}.0/24`];
    return {
      real: [
        () => addNode(real, name, address, podCidr),
        () => setAddress(real, name, "192.0.2.99"),
        () => removeNode(real, name),
      ],
      played: [
        () => played.put(name, [podCidr], address),
        () => played.put(name, [podCidr], "192.0.2.99"),
        () => played.delete(name),
      ],
    };
  };
  const add = async (name: string, number: number): Promise<void> => {
    const all = steps(name, number);
    await all.real[0]?.();
    await all.played[0]?.();
  };
  const both = async (
    asked: (server: "real" | "played") => Asked,
    ending: (server: "real" | "played") => Ending = () => ({}),
  ): Promise<Pair> => {
    const ca = readFileSync(real.ca, "utf8");
    const of = (server: "real" | "played", url: string) =>
      exchange(url, ca, { token: "administrator", ...asked(server) }, ending(server));
    const [realOne, playedOne] = await Promise.all([of("real", real.url), of("played", played.url)]);
    return { real: realOne, played: playedOne };
  };
  const versions = async () => {
    const { body } = await real.ask("GET", "/api/v1/nodes");
    return { real: (body["metadata"] as { resourceVersion: string }).resourceVersion, played: String(played.version) };
  };
  const watching = (version: string, seconds: number, bookmarks = true): Asked => ({
    method: "GET",
    path: `/api/v1/nodes?watch=true&resourceVersion=${version}&timeoutSeconds=${seconds}${bookmarks ? "&allowWatchBookmarks=true" : ""}`,
  });

  const get = (path: string) => () => ({ method: "GET", path });
  const patch = (path: string) => () => ({
    method: "PATCH",
    path,
    body: { metadata: { annotations: { "node.pipette.io/mac-address": "02:00:00:00:00:01" } } },
    contentType: "application/merge-patch+json",
  });

  test.each<[string, () => Asked]>([
    ["a Node", get("/api/v1/nodes/a")],
    ["a Node that is not there", get("/api/v1/nodes/none")],
    ["the change of a Node", patch("/api/v1/nodes/b")],
    ["the change of a Node that is not there", patch("/api/v1/nodes/none")],
    ["all Nodes", get("/api/v1/nodes?limit=100")],
    ["a page of Nodes", get("/api/v1/nodes?limit=2")],
    ["a page after nonsense", get("/api/v1/nodes?limit=2&continue=nonsense")],
  ])("answers as that one when it is asked for %s", async (_, asked) => {
    const pair = await both(asked);
    expectSameHead(pair);
    expect(pair.played.isComplete && pair.real.isComplete).toBe(true);
    expectSameShape(JSON.parse(pair.played.text), JSON.parse(pair.real.text));
  });

  test("refuses whom it does not know in the same words", async () => {
    played.refusals.push({ status: 401, message: "Unauthorized" });
    const pair = await both(() => ({ ...get("/api/v1/nodes")(), token: "nobody" }));
    expectSameHead(pair);
    expect(JSON.parse(pair.played.text)).toEqual(JSON.parse(pair.real.text));
  });

  test("a watch after which nothing happens: a head at once, no bookmark, and the end in time", async () => {
    const now = await versions();
    const pair = await both((server) => watching(now[server], 4));
    expectSameHead(pair);
    for (const [name, { text, headMs, endMs, isComplete }] of Object.entries(pair)) {
      expect([name, isComplete, text]).toEqual([name, true, ""]);
      // Far from each other, whatever else the machine does.
      expect(endMs - headMs).toBeGreaterThan(1500);
    }
  });

  test("a watch of something: a bookmark two seconds before the end, if it asked for them", async () => {
    const now = await versions();
    const all = steps(fresh(), 9);
    const begin = (server: "real" | "played") => (chunks: number) => void (chunks === 0 && all[server][0]?.());
    const told = async (bookmarks: boolean): Promise<Pair> => {
      const pair = await both(
        (server) => watching(now[server], 6, bookmarks),
        (server) => (bookmarks ? { progress: begin(server) } : {}),
      );
      expectSameHead(pair);
      expect([pair.real.isComplete, pair.played.isComplete]).toEqual([true, true]);
      return pair;
    };
    const [asked, not] = await Promise.all([told(true), told(false)]);
    const types = (of: Exchange) => linesOf(of).map(({ type }) => type);
    for (const of of [asked.real, asked.played]) {
      // Of a server that is short of time there may be one more.
      expect([...new Set(types(of))]).toEqual(["ADDED", "BOOKMARK"]);
      expect((of.chunks.at(-1)?.atMs ?? 0) - of.headMs).toBeGreaterThan(1500);
    }
    for (const of of [not.real, not.played]) expect(types(of)).toEqual(["ADDED"]);
    const [realLine, playedLine] = [linesOf(asked.real)[1], linesOf(asked.played)[1]];
    expectSameShape(playedLine, realLine);
    // What a client goes on from is all that it says of the object.
    expect(Object.keys(realLine?.object.metadata ?? {})).toEqual(["resourceVersion"]);
  });

  test("what comes, changes and goes: a line each, in chunks of their own, ended by a line feed", async () => {
    const now = await versions();
    const all = steps(fresh(), 4);
    // Each change when the one before has been heard: what waits to be sent shares a chunk.
    const pair = await both(
      (server) => watching(now[server], 30),
      (server) => ({ chunks: 3, ms: 20_000, progress: (chunks) => void all[server][chunks]?.() }),
    );
    expectSameHead(pair);
    const [realLines, playedLines] = [linesOf(pair.real), linesOf(pair.played)];
    for (const { chunks } of [pair.real, pair.played])
      for (const { text } of chunks.slice(0, 3)) expect(text.indexOf("\n")).toBe(text.length - 1);
    expect(playedLines.map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
    for (const [i, line] of playedLines.entries()) expectSameShape(line, realLines[i]);
    const versionsOf = (lines: readonly Line[]) => lines.map(({ object }) => Number(object.metadata.resourceVersion));
    // A Node that goes has a version of its own, which is later than that of its last change.
    for (const rising of [versionsOf(realLines), versionsOf(playedLines)])
      expect(rising).toEqual([...new Set(rising)].sort((a, b) => a - b));
  });

  test("a watch from a version that is too old: 200, then 410 in the stream", async () => {
    const before = await versions();
    await add(fresh(), 5);
    await real.compact();
    await real.signal("SIGKILL");
    await real.startAgain();
    played.compactedBelow = played.version + 1;
    const pair = await both(
      (server) => watching(before[server], 30),
      () => ({ chunks: 1, ms: 20_000 }),
    );
    expectSameHead(pair);
    expect(pair.real.status).toBe(200);
    const [realLine, playedLine] = [pair.real, pair.played].map(({ text }) => JSON.parse(text));
    expect(withoutNumbers(playedLine)).toEqual(withoutNumbers(realLine));
    expect(realLine.object).toMatchObject({ code: 410, reason: "Expired" });
  });
});

interface Line {
  readonly type: string;
  readonly object: { readonly metadata: { readonly resourceVersion: string } };
}

const linesOf = ({ text }: Exchange): readonly Line[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

/** What clients read of it. */
function expectSameHead({ real, played }: Pair): void {
  const told = (of: Exchange) => ({
    status: of.status,
    type: of.headers.get("content-type"),
    cached: of.headers.get("cache-control"),
  });
  expect(told(played)).toEqual(told(real));
}

/** Every field that is played is one of the real object, of the same type; words that clients compare are the same. */
function expectSameShape(played: unknown, real: unknown, path = "answer"): void {
  const compared = /\.(kind|apiVersion|type|reason|status|code)$/;
  if (!isObject(played) && !Array.isArray(played)) {
    if (compared.test(path)) expect(played, path).toEqual(real);
    else expect(typeof played, path).toBe(typeof real);
    return;
  }
  expect([path, Array.isArray(real), typeof real]).toEqual([path, Array.isArray(played), "object"]);
  for (const [key, value] of Object.entries(played))
    expectSameShape(value, (real as Record<string, unknown>)[key], `${path}.${key}`);
  // Of a refusal nothing is left out either.
  if (isObject(played) && played["kind"] === "Status") expect(Object.keys(played)).toEqual(Object.keys(real as object));
}

const withoutNumbers = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (_, each) => (typeof each === "string" ? each.replace(/\d+/g, "0") : each));
