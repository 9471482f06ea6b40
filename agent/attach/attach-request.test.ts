import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { createLogger } from "../../shared/log.ts";
import { formatCidr, parseCidr } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import type { DataPathName } from "../config/agent-config.ts";
import type { AttachRequest } from "../datapath/datapath.ts";
import { runAdd } from "./add.ts";
import { runCheck } from "./check.ts";
import { parseCmdRequest, requestedDns, requestedMac } from "./cmd-request.ts";
import { runDel } from "./del.ts";

const guid = "5a5a5a5a-0000-4000-8000-000000000001";
let parts: PartsInMemory;
let asked: AttachRequest[];

async function startWith(dataPath: DataPathName): Promise<void> {
  parts = await partsInMemory(dataPath);
  asked = [];
  const attach = parts.dataPath.attach.bind(parts.dataPath);
  parts.dataPath.attach = (request) => {
    asked.push(request);
    return attach(request);
  };
}
beforeEach(() => startWith("bridge"));
afterEach(() => parts[Symbol.dispose]());

type Conf = Readonly<Record<string, unknown>>;

function request(verb: "ADD" | "CHECK" | "DEL", conf: Conf, args = "", containerId = "a") {
  const text = JSON.stringify({ cniVersion: "1.1.0", name: "pods", ...conf });
  const networkConfiguration = new TextEncoder().encode(text);
  const isHns = parts.config.dataPath === "hns";
  const netns = containerId !== "a" ? "container:a" : isHns ? guid : "/run/netns/a";
  const cniArgs = { containerId, netns, ifname: "eth0", args, path: "", networkConfiguration };
  return parseCmdRequest({ cniArgs }, verb, parts.config.dataPath);
}
const call = (changes: Partial<CallContext> = {}): CallContext => ({
  signal: new AbortController().signal,
  log: createLogger("error", () => undefined),
  ...changes,
});
const add = (conf: Conf = {}, args = "", containerId = "a", changes: Partial<CallContext> = {}) =>
  runAdd(parts, request("ADD", conf, args, containerId), call(changes));

describe("the data path is asked for", () => {
  test("what the request says, and nothing that it does not say", async () => {
    await add();
    const said = Object.entries(asked[0] ?? {}).flatMap(([key, value]) => (value === undefined ? [] : [key]));
    expect(said.toSorted()).toEqual(["container", "ipam", "ownLease", "owner", "phases"]);
    await runDel(parts, request("DEL", {}), call());
    const pod = "IgnoreUnknown=1;K8S_POD_NAMESPACE=n;K8S_POD_NAME=web;K8S_POD_UID=u";
    await add({ mtu: 1400, runtimeConfig: { mac: "02:00:00:00:00:0A" } }, pod);
    expect(asked[1]).toMatchObject({
      owner: ownerOf("a"),
      container: { id: "a", netns: "/run/netns/a" },
      ownLease: true,
      mtu: 1400,
      mac: "02:00:00:00:00:0a",
      pod: { namespace: "n", name: "web", uid: "u" },
    });
  });

  test("addresses of another plugin as nobody's lease of ours", async () => {
    await add({ ipam: { type: "host-local" }, ipamResult: { ips: [{ address: "10.9.0.99/24" }] } });
    expect(asked[0]).toMatchObject({ ownLease: false });
  });

  test.each([67, 65_536])("no MTU that no packet fits into: %i", async (mtu) => {
    await expect(add({ mtu })).rejects.toMatchObject({ code: 7 });
    expect(asked).toEqual([]);
  });

  test("ports on Windows alone, where no other plugin of the chain maps them", async () => {
    const conf = { runtimeConfig: { portMappings: [{ hostPort: 8080, containerPort: 80 }] } };
    await add(conf);
    expect(asked[0]?.portMappings).toBeUndefined();
    parts[Symbol.dispose]();
    await startWith("hns");
    await add(conf);
    expect(asked[0]?.portMappings).toEqual([{ hostPort: 8080, containerPort: 80, protocol: "tcp" }]);
  });

  test("nothing where the servers' names cannot be read, and then no address is taken", async () => {
    const { dataDir } = parts.config;
    const ipam = { type: "pipette-ipam", dataDir, subnet: "10.9.0.0/24", resolvConf: "/nowhere/resolv.conf" };
    await expect(add({ ipam })).rejects.toMatchObject({ code: 5 });
    expect(asked).toEqual([]);
    expect(parts.allocator.find(ownerOf("a"))).toEqual([]);
  });

  test("nothing by who names no network of ours, or addresses that are none", async () => {
    await expect(add({ name: "gone" })).rejects.toMatchObject({ code: 7 });
    await expect(
      add({ ipam: { type: "pipette-ipam", dataDir: parts.config.dataDir }, ipamResult: { ips: [] } }),
    ).rejects.toMatchObject({ code: 7 });
    await expect(add({ ipam: { type: "host-local" }, ipamResult: { ips: [] } })).rejects.toThrow("ipamResult");
    expect(asked).toEqual([]);
  });
});

describe("the hardware address asked for", () => {
  test.each([
    [
      "the runtime's before that of CNI_ARGS",
      { mac: "02:00:00:00:00:01" },
      "MAC=02:00:00:00:00:02",
      "02:00:00:00:00:01",
    ],
    ["that of CNI_ARGS, wherever it stands", {}, "IgnoreUnknown=1;MAC=02-00-00-00-00-02", "02:00:00:00:00:02"],
    ["where the runtime's is empty", { mac: "" }, "MAC=02:00:00:00:00:02", "02:00:00:00:00:02"],
    ["none where both are empty", { mac: "" }, "MAC=", undefined],
    ["none where none is", {}, "XMAC=02:00:00:00:00:02", undefined],
  ])("is %s", (_name, runtimeConfig, args, mac) => {
    expect(requestedMac(request("ADD", { runtimeConfig }, args))).toBe(mac);
  });

  test.each(["03:00:00:00:00:01", "00:00:00:00:00:00", "mutant", "02:00"])("is none of an interface: %s", (mac) => {
    expect(() => requestedMac(request("ADD", { runtimeConfig: { mac } }))).toThrow(
      expect.objectContaining({
        code: 7,
        message: expect.stringContaining(`Cannot wire "a": the hardware address asked for is "${mac}"`),
      }),
    );
  });
});

test.each([
  [
    "the runtime's",
    { runtimeConfig: { dns: { Servers: ["10.0.0.1"] } }, dns: { nameservers: ["10.0.0.2"] } },
    "10.0.0.1",
  ],
  ["the configuration's", { runtimeConfig: { dns: { Servers: [] } }, dns: { nameservers: ["10.0.0.2"] } }, "10.0.0.2"],
  ["nobody's", { dns: {} }, undefined],
])("DNS asked for is %s", (_name, conf, server) => {
  expect(requestedDns(new Fields(conf))?.nameservers?.[0]).toBe(server);
});

describe("an ADD", () => {
  test("that comes through is what nobody has to clean up any more", async () => {
    parts.pendingCleanup.set(ownerKey(ownerOf("a")), ownerOf("a"));
    await add();
    expect(parts.pendingCleanup.size).toBe(0);
  });

  test("says when it began, a workload's nothing of its sandbox", async () => {
    parts[Symbol.dispose]();
    await startWith("hns");
    await add({}, "", "a", { startedUptimeMs: 1_000 });
    expect(parts.lastAddAt.get(ownerKey(ownerOf("a")))).toBe(1_000);
    await add({}, "", "w", { startedUptimeMs: 3_000 });
    expect(parts.lastAddAt.get(ownerKey(ownerOf("a")))).toBe(1_000);
  });

  test.each([
    ["is undone where it was the first", false, [], ["cooling"]],
    ["leaves what stood before", true, ["a"], ["allocated"]],
  ] as const)("whose caller goes while it wires %s", async (_name, isAgain, containers, states) => {
    if (isAgain) await add();
    const caller = new AbortController();
    parts.dataPath.before = (action) => {
      if (action === "attach") caller.abort();
    };
    const ended = add({}, "", "a", { signal: caller.signal });
    if (isAgain) await ended;
    else await expect(ended).rejects.toMatchObject({ code: 11 });
    expect(parts.dataPath.containers()).toEqual(containers);
    expect(parts.allocator.list().map(({ state }) => state)).toEqual(states);
    expect(parts.lastAddAt.has(ownerKey(ownerOf("a")))).toBe(isAgain);
  });

  test("that is given up takes away what stood before, where its addresses are somebody else's", async () => {
    await add();
    parts.dataPath.before = (action) => {
      if (action === "attach") parts.allocator.release(ownerOf("a"), "cooling");
    };
    await expect(add()).rejects.toMatchObject({ code: 11 });
    expect(parts.dataPath.containers()).toEqual([]);
    expect(parts.lastAddAt.size).toBe(0);
  });

  test("after an earlier life forgets that it has been there", async () => {
    const conf = { ipam: { type: "host-local" }, ipamResult: { ips: [{ address: "10.9.0.99/24" }] } };
    await add(conf);
    parts.allocator.recordPendingDetach(ownerOf("a"));
    parts.dataPath.before = (action) => {
      if (action === "attach") throw new Error("refused");
    };
    await expect(add(conf)).rejects.toThrow("refused");
    // It was undone, as nothing stood before it.
    expect(parts.dataPath.containers()).toEqual([]);
  });
});

test("a workload gets default routes of the families that have a gateway, by the network's subnets", async () => {
  parts[Symbol.dispose]();
  await startWith("hns");
  parts.dataPath.addressesOf.set(
    ownerKey(ownerOf("a")),
    ["10.9.0.5/24", "fd00::5/64"].map((text) => parseCidr(text)!),
  );
  await add({ ipam: { type: "host-local" } }, "", "w");
  const { ips = [], routes = [] } = asked[0]?.ipam ?? {};
  expect(ips.map(({ gateway }) => gateway !== undefined)).toEqual([true, false]);
  expect(routes.map(({ dst }) => formatCidr(dst))).toEqual(["0.0.0.0/0"]);
});

test("CHECK is content with a result that has more than what is leased, in any order", async () => {
  const { ips } = JSON.parse(await add()) as { readonly ips: readonly { readonly address: string }[] };
  const address = ips[0]?.address;
  const prevResult = { cniVersion: "1.1.0", ips: [{ address: "10.9.0.77/24" }, { address }] };
  await runCheck(parts, request("CHECK", { prevResult }), call());
});
