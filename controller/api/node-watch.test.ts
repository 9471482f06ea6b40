import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Exchange } from "../../shared/https/mod.ts";
import type { Watches } from "../watches/mod.ts";
import { acceptedEncoding } from "./encoding.ts";
import { isWatch, selectedNode, serveWatch } from "./node-watch.ts";

describe("the node that a watch is of", () => {
  test.each([
    ["", undefined],
    ["fieldSelector=", undefined],
    ["fieldSelector=nodeName%3Dn1", "n1"],
    ["fieldSelector=nodeName%3D%3Da.b-c&labelSelector=", "a.b-c"],
    [`fieldSelector=nodeName%3D${"n".repeat(253)}`, "n".repeat(253)],
  ])("%j is named", (query, node) => {
    expect(selectedNode(new URLSearchParams(query))).toBe(node);
  });

  test.each([
    "fieldSelector=nodeName",
    "fieldSelector=nodeName%3D",
    "fieldSelector=nodeName%3Dn1%2Ca%3Db",
    "fieldSelector=a%2CnodeName%3Dn1",
    "fieldSelector=nodeName%3D-n1",
    "fieldSelector=nodeName%3Dn1.",
    "fieldSelector=nodeName%3DN1",
    `fieldSelector=nodeName%3D${"n".repeat(254)}`,
    "fieldSelector=nodeName%3Dn1&labelSelector=a%3Db",
  ])("%j names none", (query) => {
    expect(() => selectedNode(new URLSearchParams(query))).toThrow(expect.objectContaining({ status: 400 }));
  });

  test.each([
    ["watch=true", true],
    ["watch=1", true],
    ["watch=false", false],
    ["watch", false],
    ["", false],
  ])("%j asks for a watch: %s", (query, is) => {
    expect(isWatch(new URLSearchParams(query))).toBe(is);
  });
});

describe("the encoding of an answer", () => {
  const protobuf = "application/vnd.kubernetes.protobuf";
  test.each([
    [undefined, "json"],
    ["*/*", "json"],
    ["application/json", "json"],
    ["text/html, application/*;q=0.5", "json"],
    [protobuf, "protobuf"],
    [`${protobuf} ;stream=watch,application/json`, "protobuf"],
    [`application/json,${protobuf}`, "json"],
    [`application/json;as=Table;v=v1,${protobuf}`, "protobuf"],
  ])("for those who take %j is %s", (accept, encoding) => {
    expect(acceptedEncoding({ header: () => accept } as unknown as Exchange)).toBe(encoding);
  });

  test.each(["text/html", "application/json;as=Table", ""])("is none for those who take %j", (accept) => {
    const exchange = { header: () => accept } as unknown as Exchange;
    expect(() => acceptedEncoding(exchange)).toThrow(expect.objectContaining({ status: 406 }));
  });
});

describe("a watch", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** What becomes of a watch that is asked for so. */
  function served(query: string, encoding: "json" | "protobuf" = "json") {
    const said: string[] = [];
    const opened: unknown[] = [];
    const seen = { said, opened, contentType: "", client: { drained: () => undefined, closed: () => undefined } };
    const exchange = {
      query: new URLSearchParams(query),
      stream: (contentType: string, client: typeof seen.client) => {
        Object.assign(seen, { contentType, client });
        return "the client";
      },
    };
    const watches = {
      open: (asked: unknown, out: unknown) => {
        opened.push(asked, out);
        return { end: () => said.push("end"), closed: () => said.push("closed"), drained: () => said.push("drained") };
      },
    };
    const asked = { node: "n1", resource: undefined, encoding };
    serveWatch(exchange as unknown as Exchange, watches as unknown as Watches, asked);
    return seen;
  }
  const hourMs = 3600_000;

  test.each([
    ["timeoutSeconds=5", 5000],
    ["timeoutSeconds=0", 2 * hourMs],
    ["timeoutSeconds=999999999", 2 * hourMs],
  ])("ends when its time is over: %s", (query, ms) => {
    const { said } = served(query);
    vi.advanceTimersByTime(ms - 1);
    expect(said).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(said).toEqual(["end"]);
  });

  test("of a client that does not say ends after one to two hours, at another time for each", () => {
    vi.spyOn(Math, "random").mockReturnValueOnce(0).mockReturnValueOnce(0.5);
    const [first, second] = [served(""), served("")];
    vi.advanceTimersByTime(hourMs - 1);
    expect([first.said, second.said]).toEqual([[], []]);
    vi.advanceTimersByTime(1);
    expect([first.said, second.said]).toEqual([["end"], []]);
    vi.advanceTimersByTime(0.5 * hourMs);
    expect(second.said).toEqual(["end"]);
  });

  test("whose client goes is closed, and not ended later", () => {
    const { said, client } = served("timeoutSeconds=5");
    client.drained();
    client.closed();
    vi.advanceTimersByTime(hourMs);
    expect(said).toEqual(["drained", "closed"]);
  });

  test.each([
    ["sendInitialEvents=true&allowWatchBookmarks=true", true],
    ["sendInitialEvents=true", false],
    ["allowWatchBookmarks=true", false],
    ["", false],
  ])("begins as a list where it is asked to: %j", (query, isWatchList) => {
    expect(served(query).opened).toEqual([
      { node: "n1", resource: undefined, encoding: "json", isWatchList },
      "the client",
    ]);
  });

  test("says what it sends, and nothing of one that asks for a time that is none", () => {
    expect(served("").contentType).toBe("application/json");
    expect(served("", "protobuf").contentType).toBe("application/vnd.kubernetes.protobuf;stream=watch");
    for (const time of ["soon", "-1", "", "1234567890"])
      expect(() => served(`timeoutSeconds=${time}`)).toThrow(expect.objectContaining({ status: 400 }));
  });
});
