import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { createLogger } from "../../shared/log.ts";
import { uptimeMs } from "../../shared/os/uptime.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { Janitor } from "../reconcile/mod.ts";
import { runAdd } from "./add.ts";
import { runCheck } from "./check.ts";
import { type CmdRequest, type CmdVerb, parseCmdRequest } from "./cmd-request.ts";
import { runDel } from "./del.ts";

let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => parts[Symbol.dispose]());

const silent = createLogger("error", () => undefined);
const call = (signal = new AbortController().signal) => ({ signal, log: silent });

function request(verb: CmdVerb, id: string, conf: Readonly<Record<string, unknown>> = { name: "pods" }): CmdRequest {
  const networkConfiguration = new TextEncoder().encode(JSON.stringify({ cniVersion: "1.1.0", ...conf }));
  const rest = { netns: "/run/netns/x", ifname: "eth0", args: "", path: "" };
  return parseCmdRequest({ cniArgs: { containerId: id, ...rest, networkConfiguration } }, verb, "bridge");
}

/** A configuration with ranges of its own. */
const ownRequest = (id: string): CmdRequest => request("ADD", id, parts.conf);

const states = (id: string): string[] =>
  parts.allocator
    .list()
    .filter((lease) => lease.owner.sandboxId === id)
    .map((lease) => lease.state);

describe("ADD", () => {
  test("that fails takes back what it did, and its addresses cool", async () => {
    parts.dataPath.before = (action) => {
      if (action === "attach") throw new Error("refused");
    };
    await expect(runAdd(parts, request("ADD", "a"), call())).rejects.toThrow("refused");
    expect([parts.dataPath.containers(), states("a")]).toEqual([[], ["cooling"]]);
  });

  test("again, that fails, leaves what stands as it is", async () => {
    await runAdd(parts, request("ADD", "a"), call());
    parts.dataPath.before = () => {
      throw new Error("refused");
    };
    await expect(runAdd(parts, request("ADD", "a"), call())).rejects.toThrow("refused");
    expect([parts.dataPath.containers(), states("a")]).toEqual([["a"], ["allocated"]]);
    expect(parts.pendingCleanup.size).toBe(0);
  });

  test("that can neither be done nor undone is left to the janitor, its address withheld until then", async () => {
    parts.dataPath.before = () => {
      throw new Error("refused");
    };
    await expect(runAdd(parts, request("ADD", "a"), call())).rejects.toThrow("refused");
    expect(states("a")).toEqual(["releasing"]);
    expect([...parts.pendingCleanup.keys()]).toEqual([ownerKey(ownerOf("a"))]);
    parts.dataPath.before = () => undefined;
    await new Janitor(parts, { intervalMs: 1, staleGraceMs: 60_000 }).round();
    expect([states("a"), parts.pendingCleanup.size]).toEqual([["cooling"], 0]);
  });

  test("whose addresses are given up during the wiring is undone", async () => {
    const add = ownRequest("a");
    parts.dataPath.before = (action) => {
      if (action === "attach") parts.allocator.release(ownerOf("a"), "releasing");
    };
    await expect(runAdd(parts, add, call())).rejects.toMatchObject({ code: 11 });
    expect([parts.dataPath.containers(), states("a")]).toEqual([[], ["releasing"]]);
  });

  test("whose addresses were given up and taken anew meanwhile is undone too: the generation tells", async () => {
    const add = ownRequest("a");
    parts.dataPath.before = (action) => {
      if (action !== "attach") return;
      parts.allocator.release(ownerOf("a"), "cooling");
      parts.allocator.allocate(ownerOf("a"), parts.ipam);
    };
    await expect(runAdd(parts, add, call())).rejects.toMatchObject({ code: 11 });
    expect(parts.dataPath.containers()).toEqual([]);
    expect(states("a")).toEqual(["allocated"]);
  });

  test("whose caller goes during the wiring is undone, one that stood before is not", async () => {
    const gone = new AbortController();
    parts.dataPath.before = (action) => {
      if (action === "attach") gone.abort();
    };
    await expect(runAdd(parts, request("ADD", "a"), call(gone.signal))).rejects.toMatchObject({ code: 11 });
    expect([parts.dataPath.containers(), states("a")]).toEqual([[], ["cooling"]]);

    parts.dataPath.before = () => undefined;
    await runAdd(parts, request("ADD", "b"), call());
    const goneAgain = new AbortController();
    parts.dataPath.before = () => goneAgain.abort();
    await runAdd(parts, request("ADD", "b"), call(goneAgain.signal));
    expect([parts.dataPath.containers(), states("b")]).toEqual([["b"], ["allocated"]]);
  });

  test("whose caller gave up while the agent was frozen over the wiring is undone", async () => {
    // The node's clock goes on in a frozen agent, and the caller's time with it.
    let until = (uptimeMs() ?? 0) + 60_000;
    const late = {
      ...call(),
      get untilUptimeMs() {
        return until;
      },
    };
    parts.dataPath.before = (action) => {
      if (action === "attach") until = (uptimeMs() ?? 0) - 1;
    };
    await expect(runAdd(parts, request("ADD", "a"), late)).rejects.toMatchObject({ code: 11 });
    expect([parts.dataPath.containers(), states("a"), parts.lastAddAt.size]).toEqual([[], ["cooling"], 0]);
  });

  test("whose addresses are given up and whose wiring cannot be undone withholds them until it is", async () => {
    parts.dataPath.before = (action) => {
      if (action === "attach") parts.allocator.release(ownerOf("a"), "releasing");
      else throw new Error("busy");
    };
    await expect(runAdd(parts, request("ADD", "a"), call())).rejects.toMatchObject({ code: 11 });
    expect([parts.dataPath.containers(), states("a")]).toEqual([["a"], ["releasing"]]);
    expect([...parts.pendingCleanup.keys()]).toEqual([ownerKey(ownerOf("a"))]);
  });

  test("says whose the address is: not ours where another IPAM plugin gave it", async () => {
    await runAdd(parts, ownRequest("own"), call());
    const foreign = { name: "pods", ipam: { type: "host-local" }, ipamResult: { ips: [{ address: "10.9.0.99/24" }] } };
    await runAdd(parts, request("ADD", "foreign", foreign), call());
    const own = [...parts.dataPath.standing.values()].map(({ owner, ownLease }) => [owner.sandboxId, ownLease]);
    expect(own).toEqual([
      ["own", true],
      ["foreign", false],
    ]);
  });

  test("with addresses brought along where they are to be ours is refused", async () => {
    const conf = { ...parts.conf, ipamResult: { ips: [{ address: "10.9.0.99/24" }] } };
    await expect(runAdd(parts, request("ADD", "a", conf), call())).rejects.toMatchObject({ code: 7 });
    expect(parts.dataPath.containers()).toEqual([]);
  });

  test("whose leases are to lie in another place than the agent's is refused, with both places", async () => {
    const ipam = { ...(parts.conf["ipam"] as object), dataDir: "/var/lib/other" };
    const wanted = `"ipam.dataDir" is "/var/lib/other", wanted "${parts.config.dataDir}"`;
    await expect(runAdd(parts, request("ADD", "a", { ...parts.conf, ipam }), call())).rejects.toThrow(wanted);
    expect(parts.dataPath.containers()).toEqual([]);
  });

  test("that nobody waits for any more touches nothing", async () => {
    const late = { ...call(), untilUptimeMs: (uptimeMs() ?? 0) - 1 };
    await expect(runAdd(parts, ownRequest("a"), late)).rejects.toMatchObject({ code: 11 });
    await expect(runAdd(parts, ownRequest("a"), call(AbortSignal.abort()))).rejects.toMatchObject({ code: 11 });
    expect([parts.dataPath.containers(), states("a")]).toEqual([[], []]);
    await runAdd(parts, ownRequest("a"), { ...call(), untilUptimeMs: (uptimeMs() ?? 0) + 60_000 });
    expect(states("a")).toEqual(["allocated"]);
  });

  test("after a DEL that never came through begins a new life", async () => {
    const conf = { name: "pods", ipam: { type: "host-local" }, ipamResult: { ips: [{ address: "10.9.0.99/24" }] } };
    await runAdd(parts, request("ADD", "a", conf), call());
    parts.allocator.recordPendingDetach(ownerOf("a"));
    const seen: string[] = [];
    parts.dataPath.before = (action) => void seen.push(action);
    await runAdd(parts, request("ADD", "a", conf), call());
    expect(seen).toEqual(["detach", "attach"]);
    expect(parts.allocator.pendingDetaches()).toEqual([]);
  });

  test("takes requested addresses, MAC and DNS from the request where the agent gives the addresses", async () => {
    const runtimeConfig = { ips: ["10.9.0.77"], dns: { Servers: ["10.9.0.10"] }, mac: "02-00-00-00-00-0A" };
    const text = await runAdd(parts, request("ADD", "a", { name: "pods", runtimeConfig }), call());
    expect(JSON.parse(text)).toMatchObject({ ips: [{ address: "10.9.0.77/24" }], dns: { nameservers: ["10.9.0.10"] } });
  });

  test("hands the pod's name on to interface and lease", async () => {
    const seen: unknown[] = [];
    const attach = parts.dataPath.attach.bind(parts.dataPath);
    parts.dataPath.attach = (asked) => {
      seen.push(asked.pod, asked.mtu, asked.mac);
      return attach(asked);
    };
    const pod = { namespace: "default", name: "web", uid: "u1" };
    await runAdd(parts, { ...request("ADD", "a", { name: "pods", mtu: 1400 }), pod }, call());
    expect(seen).toEqual([pod, 1400, undefined]);
    expect(parts.allocator.find(ownerOf("a"))).toMatchObject([{ pod }]);
  });

  test("that the pool has nothing for touches no interface", async () => {
    const { allocator } = parts;
    for (let i = 0; i < 253; i++) allocator.allocate(ownerOf(`full-${i}`), parts.ipam);
    await expect(runAdd(parts, request("ADD", "a"), call())).rejects.toMatchObject({ code: 101 });
    expect(parts.dataPath.containers()).toEqual([]);
  });
});

describe("CHECK", () => {
  test("of a sandbox that holds no address of ours fails, and says which were expected", async () => {
    const prevResult = { cniVersion: "1.1.0", ips: [{ address: "10.9.0.2/24" }] };
    const check = request("CHECK", "a", { ...parts.conf, prevResult });
    await expect(runCheck(parts, check, call())).rejects.toThrow('no address is leased to it, wanted "10.9.0.2/24"');
    await runAdd(parts, ownRequest("a"), call());
    await runCheck(parts, check, call());
  });
});

describe("CHECK compares with the result of the ADD", () => {
  const result = { cniVersion: "1.1.0", ips: [{ address: "10.9.0.2/24" }] };
  const check = (conf: Readonly<Record<string, unknown>>): CmdRequest =>
    request("CHECK", "a", { ...parts.conf, ...conf });

  test("without it, of an older version, or of a network that is not served", async () => {
    await expect(runCheck(parts, check({}), call())).rejects.toMatchObject({ code: 7 });
    await expect(runCheck(parts, check({ cniVersion: "0.3.1", prevResult: result }), call())).rejects.toMatchObject({
      code: 1,
      message: expect.stringContaining('"0.4.0" or later'),
    });
    const elsewhere = check({ name: "gone", prevResult: result });
    await expect(runCheck(parts, elsewhere, call())).rejects.toMatchObject({ code: 7 });
  });

  test("each address that is leased, then what stands in the sandbox, while the owner's mutex is held", async () => {
    await runAdd(parts, ownRequest("a"), call());
    const other = { ...result, ips: [{ address: "10.9.0.3/24" }] };
    const seen: unknown[] = [];
    parts.dataPath.check = async (owner?: unknown, netns?: unknown, prev?: unknown) => {
      seen.push([owner, netns, prev, parts.mutex.isBusy(ownerKey(ownerOf("a")))]);
      throw new Error("the interface is down");
    };
    await expect(runCheck(parts, check({ prevResult: other }), call())).rejects.toMatchObject({
      code: 103,
      message: 'Cannot confirm "a": it holds address "10.9.0.2", wanted an address of "prevResult"',
    });
    expect(seen).toEqual([]);
    await expect(runCheck(parts, check({ prevResult: result }), call())).rejects.toThrow("the interface is down");
    const ips = [expect.objectContaining({ address: expect.objectContaining({ prefix: 24 }) })];
    expect(seen).toEqual([[ownerOf("a"), "/run/netns/x", expect.objectContaining({ ips }), true]]);
  });

  test("and not with leases where another IPAM plugin keeps them", async () => {
    await runCheck(parts, check({ ipam: { type: "host-local" }, prevResult: result }), call());
  });
});

describe("DEL", () => {
  test("ends a lease that the agent gave, and is the same again", async () => {
    await runAdd(parts, request("ADD", "a"), call());
    for (let i = 0; i < 2; i++) await runDel(parts, request("DEL", "a"), call());
    expect([parts.dataPath.containers(), states("a")]).toEqual([[], ["cooling"]]);
  });

  test("that an ADD has overtaken leaves the new life alone, one that came after the ADD does not", async () => {
    const began = (startedUptimeMs: number) => ({ ...call(), startedUptimeMs });
    const del = request("DEL", "a", parts.conf);
    await runAdd(parts, ownRequest("a"), began(2_000));
    await expect(runDel(parts, del, began(1_000))).rejects.toMatchObject({ code: 104 });
    expect([parts.dataPath.containers(), states("a")]).toEqual([["a"], ["allocated"]]);
    await runDel(parts, del, began(2_000));
    expect([parts.dataPath.containers(), states("a")]).toEqual([[], ["cooling"]]);
  });

  test("that the kernel refuses: durable where the agent keeps the lease, an error where another plugin does", async () => {
    await runAdd(parts, request("ADD", "a"), call());
    parts.dataPath.before = () => {
      throw new Error("busy");
    };
    await runDel(parts, request("DEL", "a"), call());
    expect([parts.dataPath.containers(), states("a")]).toEqual([["a"], ["releasing"]]);
    const delegated = request("DEL", "b", { name: "pods", ipam: { type: "host-local" } });
    await expect(runDel(parts, delegated, call())).rejects.toThrow("busy");
    parts.dataPath.before = () => undefined;
    await new Janitor(parts, { intervalMs: 1, staleGraceMs: 60_000 }).round();
    expect([parts.dataPath.containers(), states("a")]).toEqual([[], ["cooling"]]);
  });

  test.each([
    ["a network that is not served", { name: "gone" }],
    ["an ipam section that is none", { name: "pods", ipam: 7 }],
    ["a data directory that is none", { name: "pods", ipam: { type: "pipette-ipam", dataDir: 7 } }],
    ["an unknown version", { name: "pods", cniVersion: "9.9" }],
  ])("ends what stands with %s", async (_name, conf) => {
    const owner = { ...ownerOf("a"), network: conf.name };
    parts.allocator.allocate(owner, parts.ipam);
    parts.dataPath.standing.set(ownerKey(owner), { owner, ownLease: true, hostIfname: "ve-a" });
    parts.lastAddAt.set(ownerKey(owner), 0);
    await runDel(parts, request("DEL", "a", conf), call());
    expect([parts.dataPath.containers(), states("a"), parts.lastAddAt.size]).toEqual([[], ["cooling"], 0]);
  });

  test("of a sandbox ends that of its network and interface only", async () => {
    await runAdd(parts, request("ADD", "a"), call());
    await runAdd(parts, request("ADD", "b"), call());
    await runDel(parts, request("DEL", "b"), call());
    expect([parts.dataPath.containers(), states("a"), states("b")]).toEqual([["a"], ["allocated"], ["cooling"]]);
  });
});
