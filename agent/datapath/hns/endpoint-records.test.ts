import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { type EndpointRecord, EndpointRecords, endpointId } from "./endpoint-records.ts";

const owner = { network: "pods", sandboxId: "a", ifname: "eth0" };
const id = endpointId(owner);

test("an owner's endpoint has one identifier in every release: a GUID of version 8", () => {
  expect(id).toBe("c30b2266-9a2c-8834-b69b-ad02af31c2cf");
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(endpointId({ ...owner, ifname: "eth1" })).not.toBe(id);
});

test("records are read again as they were written, and leave nothing beside them", () => {
  using scratch = scratchDir();
  const directory = join(scratch.path, "hns");
  const record: EndpointRecord = {
    owner,
    ownLease: true,
    unsure: true,
    goneSinceMs: 7,
    made: { namespace: "n", document: { Name: "x" } },
  };
  const records = EndpointRecords.open(directory);
  records.put(id, record);
  records.put("other", { owner, ownLease: false });
  expect(readdirSync(directory).sort()).toEqual([`${id}.json`, "other.json"].sort());
  const again = EndpointRecords.open(directory);
  expect(again.get(id)).toEqual(record);
  expect(again.get("other")).toEqual({ owner, ownLease: false });
  again.remove(id);
  again.remove("never");
  expect(EndpointRecords.open(directory).all()).toEqual([["other", { owner, ownLease: false }]]);
});

test.each<[string, unknown]>([
  ["half a file", '{"owner":'],
  ["no owner", { ownLease: true }],
  ["an owner that is a word", { owner: "a" }],
  ["an owner without a network", { owner: { sandboxId: "a", ifname: "eth0" } }],
  ["an owner without a sandbox", { owner: { network: "pods", ifname: "eth0" } }],
  ["an owner without an interface", { owner: { network: "pods", sandboxId: "a" } }],
])("what somebody else or a crash has left there is no record: %s", (_what, value) => {
  using scratch = scratchDir();
  writeFileSync(join(scratch.path, "x.json"), typeof value === "string" ? value : JSON.stringify(value));
  expect(EndpointRecords.open(scratch.path).all()).toEqual([]);
});

test("of what a record says besides the owner only what can be right is taken, and other files are none", () => {
  using scratch = scratchDir();
  mkdirSync(join(scratch.path, "directory"));
  const odd = { owner, ownLease: "yes", unsure: 1, goneSinceMs: "7", made: { namespace: "n", document: 3 } };
  writeFileSync(join(scratch.path, "x.json"), JSON.stringify(odd));
  writeFileSync(join(scratch.path, "x.json.7.tmp"), JSON.stringify({ owner }));
  expect(EndpointRecords.open(scratch.path).all()).toEqual([["x", { owner, ownLease: false }]]);
});
