import { afterEach, beforeEach, expect, test } from "vitest";
import {
  type HnsNode,
  hnsNode,
  ip,
  joining,
  namespaceA,
  namespaceB,
  ownerOf,
  requestFor,
} from "../../../test/fakes/hns/hns-node.ts";
import type { DataPath } from "../datapath.ts";
import { endpointId } from "./endpoint-records.ts";

let hns: HnsNode;

beforeEach(async () => {
  hns = hnsNode();
  await hns.dataPath.start();
});
afterEach(() => hns[Symbol.asyncDispose]());

const id = endpointId(ownerOf("a"));
const own = { owner: ownerOf("a"), ownLease: true };
const request = {
  ...requestFor("a", namespaceA, 7),
  portMappings: [{ hostPort: 8080, containerPort: 80, protocol: "tcp" as const }],
};
const missingOf = async (dataPath: DataPath) => {
  await dataPath.list();
  return dataPath.missing?.();
};
const remake = (dataPath: DataPath, host = 7) => dataPath.remake?.(own, [ip(`10.9.0.${host}`)]);
/** As a crash of the service leaves it. */
function lose(): void {
  hns.fake.service.restart();
}

test("an endpoint that HNS has lost is made as it was: address, hardware address, ports, namespace", async () => {
  const before = await hns.dataPath.attach(request);
  const document = hns.fake.endpoint(id);
  expect(await missingOf(hns.dataPath)).toEqual([]);
  lose();
  expect(await missingOf(hns.dataPath)).toEqual([own]);
  expect(await remake(hns.dataPath)).toBe(true);
  expect(hns.fake.endpoint(id)).toEqual(document);
  expect(hns.fake.endpointsIn(namespaceA)).toEqual([id]);
  expect([await missingOf(hns.dataPath), await remake(hns.dataPath)]).toEqual([[], false]);
  await hns.dataPath.check(ownerOf("a"), namespaceA, before);
  expect(await hns.dataPath.attach(request)).toEqual(before);
});

test("one that was lost while no agent ran is known to the next, and is no leftover", async () => {
  await hns.dataPath.attach(request);
  await hns.dataPath[Symbol.asyncDispose]();
  lose();
  const next = hns.again();
  await next.start();
  expect(next.missing?.()).toEqual([own]);
  expect(await remake(next)).toBe(true);
  await next.start();
  expect([hns.leftovers, hns.fake.endpoints.length]).toEqual([[], 1]);
});

test("one that was taken out of its namespace, or put into another, comes back", async () => {
  await hns.dataPath.attach(request);
  await hns.fake.hcn.detach(namespaceA, id);
  expect(await missingOf(hns.dataPath)).toEqual([own]);
  expect(await remake(hns.dataPath)).toBe(true);
  await hns.fake.hcn.detach(namespaceA, id);
  await hns.fake.hcn.attach(namespaceB, id);
  await missingOf(hns.dataPath);
  expect(await remake(hns.dataPath)).toBe(true);
  expect(hns.fake.endpointsIn(namespaceA)).toEqual([id]);
});

test("one whose sandbox has gone stays away until an ADD comes, and so does one whose lease has another address", async () => {
  await hns.dataPath.attach(request);
  lose();
  expect(await remake(hns.dataPath, 8)).toBe(false);
  hns.fake.service.store.namespaces.delete(namespaceA.toUpperCase());
  expect([await remake(hns.dataPath), await missingOf(hns.dataPath)]).toEqual([false, []]);
  await hns.dataPath.attach(requestFor("a", namespaceB, 7));
  lose();
  expect(await missingOf(hns.dataPath)).toEqual([own]);
});

test("one that was detached is nobody's any more", async () => {
  await hns.dataPath.attach(request);
  await hns.dataPath.detach(ownerOf("a"));
  expect(await missingOf(hns.dataPath)).toEqual([]);
});

test("nor is one whose first making hung and came all the same", async () => {
  hns.fake.hang("createEndpoint", "taking effect");
  await expect(hns.dataPath.attach(request)).rejects.toMatchObject({ code: 11 });
  await hns.dataPath.attach(request);
  await hns.dataPath.detach(ownerOf("a"));
  expect(await missingOf(hns.dataPath)).toEqual([]);
  expect(await hns.dataPath.remake?.({ ...own, ownLease: false }, undefined)).toBe(false);
  expect(hns.fake.endpoints.length).toBe(0);
});

test("nor is one whose DEL has got half way", async () => {
  await hns.dataPath.attach(request);
  hns.fake.hang("deleteEndpoint", "taking effect");
  await expect(hns.dataPath.detach(ownerOf("a"))).rejects.toMatchObject({ code: 11 });
  expect(hns.fake.endpoints.length).toBe(0);
  expect(await missingOf(hns.dataPath)).toEqual([]);
  await hns.dataPath.detach(ownerOf("a"));
  await hns.dataPath.attach(request);
  lose();
  expect(await missingOf(hns.dataPath)).toEqual([own]);
});

test("a workload container that comes first joins what its sandbox had, in the sandbox's namespace", async () => {
  await hns.dataPath.attach(request);
  const document = hns.fake.endpoint(id);
  lose();
  await hns.dataPath.attach(joining(requestFor("a", namespaceA, 7), "w"));
  expect(hns.fake.endpoint(id)).toEqual(document);
  expect(hns.fake.endpointsIn(namespaceA)).toEqual([id]);
});

test("with the network gone it is for later, and then in the new one", async () => {
  await hns.dataPath.attach(request);
  lose();
  hns.fake.service.store.networks.clear();
  await expect(remake(hns.dataPath)).rejects.toMatchObject({ code: 11 });
  await hns.dataPath.start();
  expect(await remake(hns.dataPath)).toBe(true);
});

test("a making that hangs is done again once it is known to have come to nothing", async () => {
  await hns.dataPath.attach(request);
  lose();
  hns.fake.hang("createEndpoint");
  await expect(remake(hns.dataPath)).rejects.toMatchObject({ code: 11 });
  expect(await missingOf(hns.dataPath)).toEqual([own]);
  expect(await remake(hns.dataPath)).toBe(true);
  expect(hns.fake.endpoints.length).toBe(1);
});
