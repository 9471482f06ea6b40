import { describe, expect, test } from "vitest";
import { isNodeName } from "./parts.ts";
import { maxDocumentBytes, readNodeDocument, readNodesDocument } from "./read-document.ts";

const bytesOf = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
const read = (value: unknown, node: string | undefined = "a"): unknown =>
  readNodeDocument("peers", node, value instanceof Uint8Array ? value : bytesOf(value), 'node "a"');

const peer = { name: "b", self: false, state: "ready", addresses: ["10.0.0.2"], subnets: ["10.1.1.0/24"] };
const peers = { kind: "peers", version: 1, node: "a", registry: "etcd", peers: [peer], omitted: 0 };

test("a document is read as it was written, without keys of a later release", () => {
  expect(read({ ...peers, colour: "red", peers: [{ ...peer, weight: 7 }] })).toEqual(peers);
});

describe("of an agent that means harm, or is broken", () => {
  test.each([
    ["another kind", { ...peers, kind: "pods" }, '"kind" is "pods", wanted one of "peers"'],
    ["a later shape", { ...peers, version: 2 }, '"version" is 2, wanted a whole number from 1 to 1'],
    ["another node", { ...peers, node: "b" }, 'it is about node "b", wanted one about "a"'],
    ["no name of a node", { ...peers, node: "../etc" }, '"node" is "../etc", wanted the name of a node'],
    ["a missing key", { ...peers, registry: undefined }, '"registry" is missing'],
    ["a wrong value", { ...peers, peers: [{ ...peer, self: 1 }] }, '"peers[0].self" is 1, wanted true or false'],
    ["a list", [], "the document is a list of 0 entries"],
    ["nothing", null, '"kind" is missing'],
    ["no JSON", new TextEncoder().encode("<html>\u001b[2J"), "it is no JSON ("],
    ["no UTF-8", new Uint8Array([0x22, 0xff, 0x22]), "it is no JSON ("],
    ["a control character in a name", { ...peers, node: "a\u001b[2J" }, '"a\\u001b[2J"'],
  ])("%s is refused in one sentence", (_, value, wanted) => {
    const { message } = thrownBy(() => read(value));
    expect(message).toContain('Cannot read the peers of node "a": ');
    expect(message).toContain(wanted);
    expect(message).not.toContain("\u001b");
    expect(message.length).toBeLessThan(600);
  });

  test("what is too large, too deep or too long is refused before it costs anything", () => {
    expect(thrownBy(() => read(new Uint8Array(maxDocumentBytes + 1))).message).toContain(
      `it has ${maxDocumentBytes + 1} bytes, wanted at most ${maxDocumentBytes}`,
    );
    const deep = new TextEncoder().encode("[".repeat(1_000_000));
    expect(thrownBy(() => read(deep)).message).toContain("nested more than 256 deep");
    const many = { ...peers, peers: Array.from({ length: 5_001 }, () => peer) };
    expect(thrownBy(() => read(many)).message).toContain(
      '"peers" is a list of 5001 entries, wanted a list of 0 to 5000',
    );
    const long = { ...peers, registry: "x".repeat(9_000) };
    expect(thrownBy(() => read(long)).message).toContain("wanted a text of at most 8192 characters");
  });
});

test("the nodes of a cluster are read likewise", () => {
  const nodes = {
    kind: "nodes",
    version: 1,
    source: "x",
    nodes: [{ name: "a", addresses: [], subnets: [] }],
    omitted: 0,
  };
  expect(readNodesDocument(bytesOf(nodes), "x")).toEqual(nodes);
  expect(() => readNodesDocument(bytesOf({ ...nodes, nodes: [{ name: "a/b" }] }), "x")).toThrow('"nodes[0].name" is');
});

test.each([
  ["node-1.example.com", true],
  ["a", true],
  ["x".repeat(253), true],
  ["x".repeat(254), false],
  ["", false],
  ["..", false],
  [".a", false],
  ["a..b", false],
  ["A", false],
  ["a/b", false],
  ["a\u0000", false],
])("%j as the name of a node: %s", (text, wanted) => {
  expect(isNodeName(text)).toBe(wanted);
});

function thrownBy(act: () => unknown): Error {
  try {
    act();
  } catch (caught) {
    if (caught instanceof Error) return caught;
  }
  throw new Error("it was taken");
}
