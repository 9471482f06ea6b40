import { expect, test } from "vitest";
import { limits } from "../shared/limits.ts";
import { paths } from "../shared/os/paths.ts";
import { Fields } from "../shared/schema/json-fields.ts";
import { parseNetConf, parseNetConfLeniently } from "./net-conf.ts";

const parse = (conf: Record<string, unknown>) => parseNetConf(new Fields(conf));

test("takes the defaults for what is not there, or null", () => {
  const defaults = {
    socket: paths.agentSocket,
    addTimeoutMs: limits.addTimeoutMs,
    delTimeoutMs: limits.delTimeoutMs,
    ipam: { kind: "agent" },
    dataDir: paths.dataDir,
  };
  expect(parse({})).toEqual(defaults);
  expect(parse({ socket: null, ipam: null, runtimeConfig: null, logFile: null })).toEqual(defaults);
});

test("reads keys in any case", () => {
  expect(parse({ SOCKET: "/a.sock", AddTimeoutMS: 5, Ipam: { TYPE: "static" } })).toMatchObject({
    socket: "/a.sock",
    addTimeoutMs: 5,
    ipam: { kind: "delegated", type: "static" },
  });
});

test("knows its own allocator by both names, and leaves an ipam without a type to the agent", () => {
  expect(parse({ ipam: { type: "pipette-ipam" } }).ipam).toEqual({ kind: "own" });
  expect(parse({ ipam: { type: "pipette" } }).ipam).toEqual({ kind: "own" });
  expect(parse({ ipam: {} }).ipam).toEqual({ kind: "agent" });
});

test("an empty hardware address is none", () => {
  expect(() => parse({ runtimeConfig: { mac: "" } })).not.toThrow();
  expect(() => parse({ runtimeConfig: { mac: "0a-58-0a-f4-01-02" } })).not.toThrow();
});

test.each(["0a:58:0a:f4:01", "0a:58:0a:f4:01:02:03", "x0a:58:0a:f4:01:02", "0a:58:0a:f4:01:02x", "0a580af40102"])(
  "the hardware address %s is refused",
  (mac) => {
    expect(() => parse({ runtimeConfig: { mac } })).toThrow(/"runtimeConfig.mac" is/);
  },
);

test("what carries addresses between plugin and agent cannot come from outside", () => {
  expect(() => parse({ ipamResult: { ips: [] } })).toThrow(/"ipamResult".*no such key/);
});

test("leniently, every field that will not do is reported and has its default", () => {
  const problems: string[] = [];
  const conf = { socket: 5, addTimeoutMs: "1", delTimeoutMs: 200, ipam: [], dataDir: "x", mtu: "big", logLevel: 1 };
  const read = parseNetConfLeniently(new Fields(conf), (problem) => problems.push(problem));
  expect(read).toEqual({
    socket: paths.agentSocket,
    addTimeoutMs: limits.addTimeoutMs,
    delTimeoutMs: 200,
    ipam: { kind: "own" },
    dataDir: paths.dataDir,
  });
  expect(problems.map((problem) => /"(\w+)"/.exec(problem)?.[1])).toEqual([
    "socket",
    "addTimeoutMs",
    "ipam",
    "dataDir",
  ]);
});
