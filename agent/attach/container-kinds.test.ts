import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { CniError } from "../../shared/errors.ts";
import { createLogger } from "../../shared/log.ts";
import type { CallContext } from "../../shared/server/handlers.ts";
import { type KindAnswer, type KindVerb, play, scenariosOf } from "../../test/fakes/container-kinds.ts";
import { ownerOf, type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { reconcile } from "../reconcile/mod.ts";
import { runAdd } from "./add.ts";
import { runCheck } from "./check.ts";
import { parseCmdRequest } from "./cmd-request.ts";
import { runDel } from "./del.ts";

let parts: PartsInMemory;

beforeEach(async () => {
  parts = await partsInMemory("hns");
});
afterEach(() => parts[Symbol.dispose]());

const verbs = { ADD: runAdd, CHECK: runCheck, DEL: runDel };
const guid = "5a5a5a5a-0000-4000-8000-000000000001";
const joins = "container:s";

async function cni(
  verb: KindVerb,
  containerId: string,
  netns: string,
  conf: Readonly<Record<string, unknown>> = {},
  changes: Partial<CallContext> = {},
): Promise<KindAnswer> {
  const text = JSON.stringify({ cniVersion: "1.1.0", ...parts.conf, ...conf });
  const networkConfiguration = new TextEncoder().encode(text);
  const cniArgs = { containerId, netns, ifname: "eth0", args: "", path: "", networkConfiguration };
  const call = { signal: new AbortController().signal, log: createLogger("error", () => undefined), ...changes };
  try {
    return { t: "ok", text: (await verbs[verb](parts, parseCmdRequest({ cniArgs }, verb, "hns"), call)) ?? "" };
  } catch (caught) {
    const { code, message } = CniError.from(caught);
    return { t: "error", code, message };
  }
}

/** What a new process would know: the store and the data path. */
async function restart(): Promise<void> {
  parts.lastAddAt.clear();
  parts.pendingCleanup.clear();
  await reconcile(parts);
}

async function state(): Promise<{ leases: string[]; interfaces: string[] }> {
  const leases = parts.allocator.list().filter(({ state }) => state === "allocated");
  return { leases: leases.map(({ owner }) => owner.sandboxId).sort(), interfaces: parts.dataPath.containers() };
}

describe.each(["containerd", "docker"] as const)("under a runtime like %s", (style) => {
  test.each(scenariosOf(style))("$name", (scenario) => play({ cni, restart, state }, scenario));
});

describe("a workload container", () => {
  test("shares its sandbox's interface, which is made once, and never leaves it by itself", async () => {
    await cni("ADD", "s", guid);
    for (const id of ["w", "x", "w"]) await cni("ADD", id, joins);
    expect([...(parts.dataPath.containersOf.get(ownerKey(ownerOf("s"))) ?? [])]).toEqual(["s", "w", "x"]);
    const seen: string[] = [];
    parts.dataPath.before = (action) => void seen.push(action);
    await cni("DEL", "w", joins);
    expect([seen, parts.dataPath.made]).toEqual([[], 1]);
  });

  test("that cannot join takes nothing away from its sandbox", async () => {
    await cni("ADD", "s", guid);
    // Not even where the agent knows nothing of the sandbox's interface any more.
    parts.lastAddAt.clear();
    parts.dataPath.before = (action) => {
      if (action === "attach") throw new Error("refused");
    };
    expect(await cni("ADD", "w", joins)).toMatchObject({ t: "error", message: expect.stringContaining("refused") });
    expect(await state()).toEqual({ leases: ["s"], interfaces: ["s"] });
    expect(parts.pendingCleanup.size).toBe(0);
  });

  test("of a sandbox whose DEL came through the store only gets nothing", async () => {
    await cni("ADD", "s", guid);
    parts.allocator.release(ownerOf("s"), "releasing");
    expect(await cni("ADD", "w", joins)).toMatchObject({
      code: 101,
      message:
        'Cannot join container "w" to sandbox "s": that has no address in network "pods", wanted its own ADD before',
    });
  });

  test("does not make a DEL of its sandbox an overtaken one", async () => {
    await cni("ADD", "s", guid, {}, { startedUptimeMs: 1_000 });
    await cni("ADD", "w", joins, {}, { startedUptimeMs: 3_000 });
    expect(await cni("DEL", "s", guid, {}, { startedUptimeMs: 2_000 })).toMatchObject({ t: "ok" });
    expect(await state()).toEqual({ leases: [], interfaces: [] });
  });

  test("can be checked by the lease of its sandbox", async () => {
    await cni("ADD", "s", guid);
    const joined = await cni("ADD", "w", joins);
    const prevResult = JSON.parse(joined.t === "ok" ? joined.text : "");
    expect(await cni("CHECK", "w", joins, { prevResult })).toMatchObject({ t: "ok" });
    await cni("DEL", "s", guid);
    expect(await cni("CHECK", "w", joins, { prevResult })).toMatchObject({ code: 103 });
  });

  test("gets what stands on the interface where another IPAM plugin has given it, and nothing once that has left", async () => {
    const foreign = { ipam: { type: "host-local" } };
    const ipamResult = { ips: [{ address: "10.9.0.99/24", gateway: "10.9.0.1" }], routes: [{ dst: "0.0.0.0/0" }] };
    expect(await cni("ADD", "w", joins, foreign)).toMatchObject({ code: 101 });
    const first = await cni("ADD", "s", guid, { ...foreign, ipamResult });
    const joined = await cni("ADD", "w", joins, foreign);
    if (first.t !== "ok" || joined.t !== "ok") throw new Error(JSON.stringify([first, joined]));
    expect(joined.text).toBe(first.text.replace(guid, joins));
    expect(parts.allocator.list()).toEqual([]);
    parts.allocator.recordPendingDetach(ownerOf("s"));
    expect(await cni("ADD", "w", joins, foreign)).toMatchObject({ code: 101 });
  });
});

describe("DNS", () => {
  const dns = { nameservers: ["10.96.0.1"], search: ["conf.local"] };
  const nameservers = async (conf: Readonly<Record<string, unknown>>): Promise<unknown> => {
    const answer = await cni("ADD", "s", guid, conf);
    return answer.t === "ok" ? JSON.parse(answer.text).dns : answer;
  };

  test.each([
    [
      "the runtime's, as containerd spells it",
      { Servers: ["10.96.0.10"], Searches: ["a.local"], Options: ["ndots:5"] },
    ],
    [
      "the runtime's, as the specification does",
      { nameservers: ["10.96.0.10"], search: ["a.local"], options: ["ndots:5"] },
    ],
    ["the runtime's, in small letters", { servers: ["10.96.0.10"], searches: ["a.local"], options: ["ndots:5"] }],
  ])("%s, before the configuration's", async (_name, asked) => {
    const wanted = { nameservers: ["10.96.0.10"], search: ["a.local"], options: ["ndots:5"] };
    expect(await nameservers({ dns, runtimeConfig: { DNS: asked } })).toEqual(wanted);
  });

  test("the configuration's where the runtime says nothing, or only empty lists", async () => {
    expect(await nameservers({ dns })).toEqual(dns);
    expect(await nameservers({ dns, runtimeConfig: { dns: { Servers: [], Searches: [], Options: [] } } })).toEqual(dns);
  });

  test("before that of another IPAM plugin", async () => {
    const ipamResult = { ips: [{ address: "10.9.0.99/24" }], dns: { nameservers: ["10.96.0.99"] } };
    const foreign = { ipam: { type: "host-local" }, ipamResult };
    expect(await nameservers(foreign)).toEqual({ nameservers: ["10.96.0.99"] });
    expect(await nameservers({ ...foreign, dns })).toEqual(dns);
  });
});
