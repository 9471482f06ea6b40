import { expect, test } from "vitest";
import { CniError } from "../../../shared/errors.ts";
import { errorOf } from "./connection.ts";
import { cniErrorOf, EtcdError, etcdError } from "./etcd-error.ts";

const registry = { name: "the etcd registry at http://h:1", callMs: 10_000 };

// What etcd 3.4 and grpc-js really end calls with.
test.each([
  [
    14,
    "No connection established. Last error: Error: connect ECONNREFUSED 127.0.0.1:1. Resolution note: ",
    "unreachable",
    11,
  ],
  [14, "etcdserver: no leader", "uncertain", 11],
  [14, "etcdserver: request timed out", "uncertain", 11],
  [2, "context deadline exceeded", "uncertain", 11],
  [4, "Deadline exceeded after 2.0s", "uncertain", 11],
  [13, "Received RST_STREAM with code 2", "uncertain", 11],
  [8, "Bandwidth exhausted or memory limit exceeded", "uncertain", 11],
  [8, "etcdserver: mvcc: database space exceeded", "full", 11],
  [8, "Received message larger than max (70000000 vs 67108864)", "refused", 100],
  [7, "etcdserver: permission denied", "denied", 11],
  [16, "etcdserver: invalid auth token", "denied", 11],
  [3, "etcdserver: user name is empty", "denied", 11],
  [3, "etcdserver: duplicate key given in txn request", "refused", 100],
  [11, "etcdserver: mvcc: required revision has been compacted", "refused", 100],
])("status %i, %s, is %s", (code, details, trouble, cniCode) => {
  const error = etcdError(code, details);
  expect(error).toMatchObject({ trouble, passing: trouble === "unreachable" || trouble === "uncertain" });
  const told = cniErrorOf(error, 'register node "a"', registry);
  expect(told.code).toBe(cniCode);
  expect(told.message).toMatch(/^Cannot register node "a" in the etcd registry at http:\/\/h:1: .+/);
  expect(told.message).not.toContain("Resolution note");
});

test("a certificate of another time names the clock, and what is an error of ours already stays", () => {
  const early = cniErrorOf(new EtcdError("unreachable", "certificate is not yet valid"), "x", registry);
  expect(early.message).toContain("this node's clock");
  const own = new CniError(7, "Cannot x: y, wanted z");
  expect(cniErrorOf(own, "a", registry)).toBe(own);
});

test("what comes without a word of its own is named by what there is of it", () => {
  expect(errorOf({ code: 14, details: "it is away" })).toMatchObject({ message: "it is away" });
  expect(errorOf({ code: 14 })).toMatchObject({ trouble: "uncertain", message: "14" });
  expect(errorOf({ syscall: "connect" })).toMatchObject({ message: '{"syscall":"connect"}' });
  expect(errorOf(new Error("it broke"))).toMatchObject({ message: "it broke" });
});
