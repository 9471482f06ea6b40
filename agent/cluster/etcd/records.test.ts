import { describe, expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../shared/net/ip.ts";
import type { ClusterNode } from "../node-registry.ts";
import { readNode, readOwner, requireRegistration, writeNode, writeOwner } from "./records.ts";

const node: ClusterNode = {
  name: "n1",
  uid: "uid-1",
  addresses: [parseIp("192.0.2.1")!, parseIp("2001:db8::1")!],
  mac: "02:00:00:00:00:01",
  subnets: [parseCidr("10.128.0.0/23")!, parseCidr("fd00:0:0:1::/64")!],
};

describe("the record of a node", () => {
  test("reads as it was written", () => {
    expect(readNode("n1", writeNode(node))).toEqual(node);
    const { mac: _, ...plain } = node;
    expect(readNode("n1", writeNode(plain))).toEqual(plain);
    const encryption = { type: "wireguard", key: Buffer.alloc(32, 1).toString("base64") } as const;
    expect(readNode("n1", writeNode({ ...node, encryption }))).toEqual({ ...node, encryption });
  });

  test.each([
    ["n1", "", "it is empty"],
    ["n1", "[]", "wanted one JSON object"],
    ["n1", JSON.stringify({ ...JSON.parse(writeNode(node)), encryption: "rot13" }), '"encryption" is "rot13"'],
    ["n1", "x".repeat(20_000), "it has 20000 characters, wanted 16384 at most"],
    ["n1", JSON.stringify({ ...JSON.parse(writeNode(node)), subnets: [] }), '"subnets" is []'],
    [
      "n1",
      JSON.stringify({ ...JSON.parse(writeNode(node)), subnets: ["10.0.0.1/23"] }),
      '"subnets[0]" is "10.0.0.1/23"',
    ],
    [
      "n1",
      JSON.stringify({ ...JSON.parse(writeNode(node)), subnets: ["10.0.0.0/24", "10.0.1.0/24"] }),
      "one per family",
    ],
    [
      "n1",
      JSON.stringify({ ...JSON.parse(writeNode(node)), addresses: ["x"] }),
      '"addresses[0]" is "x", wanted an address',
    ],
    [
      "n1",
      JSON.stringify({ ...JSON.parse(writeNode(node)), addresses: ["127.0.0.1"] }),
      '"addresses[0]" is "127.0.0.1", wanted an address that other nodes reach',
    ],
    ["n1", JSON.stringify({ ...JSON.parse(writeNode(node)), uid: 5 }), '"uid" is 5, wanted a string'],
    ["../n1", writeNode(node), "its name is no name of a node"],
  ])("of %s that reads %s is none", (name, text, reason) => {
    expect(() => readNode(name, text)).toThrow(reason);
  });

  test.each([
    ["name", { name: "" }],
    ["name", { name: "a/b" }],
    ["uid", { uid: "" }],
    ["uid", { uid: "a b" }],
    ["list of addresses", { addresses: [] }],
    ["list of addresses", { addresses: [parseIp("10.0.0.1")!, parseIp("10.0.0.2")!] }],
    ["address", { addresses: [parseIp("0.0.0.0")!] }],
    ["address", { addresses: [parseIp("10.0.0.1")!, parseIp("ff02::1")!] }],
    ["MAC", { mac: "02-00" }],
    ["MAC", { mac: "ff:ff:ff:ff:ff:ff" }],
    ["MAC", { mac: "00:00:00:00:00:00" }],
  ])("is not written for a machine with a wrong %s", (what, part) => {
    expect(() => requireRegistration({ ...node, ...part })).toThrow(`its ${what} is`);
  });
});

test("a mark says whose a subnet is, or nothing", () => {
  const owner = { node: "n1", uid: "uid-1" };
  expect(readOwner(writeOwner(owner))).toEqual(owner);
  for (const text of ["", "{}", '{"node":"n1"}', '{"node":1,"uid":"x"}', "x".repeat(20_000)])
    expect(readOwner(text)).toBeUndefined();
});
