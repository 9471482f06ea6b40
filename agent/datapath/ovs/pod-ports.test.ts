import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownerKey } from "../../../shared/cni/owner-key.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { createLogger } from "../../../shared/log.ts";
import { parseIp } from "../../../shared/net/ip.ts";
import { DatabaseInMemory } from "../../../test/fakes/ovsdb/database-in-memory.ts";
import { roundTrip } from "../../../test/fakes/ovsdb/waiting.ts";
import { OvsdbClient } from "../../protocols/ovsdb/mod.ts";
import { ensureNodeBridge } from "./database/node-bridge.ts";
import { openDatabase, type SwitchDatabase } from "./database/switch-database.ts";
import type { PodPort } from "./overlay-node.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import { PodPorts } from "./pod-ports.ts";
import type { FlowSetChanges } from "./program/flow-set.ts";

let database: DatabaseInMemory;
let db: SwitchDatabase;
let away: AbortController;
let ports: PodPorts;
let lines: string[];
/** Keys of the flow sets that the program has, and what it is asked before it takes a change. */
let onSwitch: Map<string, unknown>;
let before: (changes: FlowSetChanges) => void | Promise<void>;

const context: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 1, mac: "02:00:00:00:00:01", addresses: [parseIp("10.1.0.1")!] },
  nodeAddresses: [],
  podSubnets: [],
  multitenant: false,
  metered: false,
};

function freshPorts(): PodPorts {
  const logger = createLogger("info", (line) => lines.push(line));
  return new PodPorts({ db, bridge: "br-int", presence: away, logger });
}

const set = async (changes: FlowSetChanges): Promise<void> => {
  await before(changes);
  for (const [key, value] of changes) {
    if (value === undefined) onSwitch.delete(key);
    else onSwitch.set(key, value);
  }
};

beforeEach(async () => {
  [lines, onSwitch, before, away] = [[], new Map(), () => undefined, new AbortController()];
  database = new DatabaseInMemory();
  await database.listen();
  db = openDatabase(database.address);
  await db.ready();
  await ensureNodeBridge(db, { name: "br-int", kind: "system", ports: [] });
  ports = freshPorts();
  ports.follow(context, set);
});
afterEach(async () => {
  db[Symbol.dispose]();
  await database[Symbol.asyncDispose]();
});

const pod = (name: string, changes: Partial<PodPort> = {}): PodPort => ({
  owner: { network: "pods", sandboxId: name, ifname: "eth0" },
  port: `${name}-p`,
  mac: "02:00:00:00:01:01",
  ips: [parseIp("10.1.0.5")!],
  pod: { namespace: "shop", name, uid: "u" },
  netns: `/run/netns/${name}`,
  ownLease: true,
  vnid: 0,
  device: "17",
  ...changes,
});
const names = () => database.names("Port").filter((name) => name !== "br-int");
const keyOf = (name: string) => `pod/${ownerKey(pod(name).owner)}`;
const refused = (code: CniCode = CniCode.interfaceFailure) => new CniError(code, "the switch says no");

describe("a pod's port", () => {
  test("is asked for before its flows are computed, so that both go on at once", async () => {
    const order: string[] = [];
    using watched = new OvsdbClient({
      address: database.address,
      monitored: db.monitored,
      open: async (_address, { data, drain, closed }) => {
        const socket = await Bun.connect({
          unix: database.address.slice("unix:".length),
          socket: { binaryType: "uint8array", data: (_, chunk) => data(chunk), drain, close: () => closed("it ended") },
        });
        const write = (bytes: Uint8Array): number => {
          order.push("written");
          return socket.write(bytes);
        };
        return { write, close: () => socket.terminate() };
      },
    });
    await watched.ready();
    const logger = createLogger("info", (line) => lines.push(line));
    const own = new PodPorts({ db: watched, bridge: "br-int", presence: away, logger });
    own.follow(
      new Proxy(context, {
        get: (target, key) => {
          order.push("computed");
          return Reflect.get(target, key);
        },
      }),
      set,
    );
    order.length = 0;
    await own.connect(pod("a"), "now");
    expect(order.slice(0, 2)).toEqual(["written", "computed"]);
  });

  test("stands with its flows when the call ends, and is known by all that was said of it", async () => {
    await ports.connect(pod("a"), "now");
    expect(database.named("Interface", "a-p")).toMatchObject({ ofport: 1024, ofport_request: 1024 });
    expect([...onSwitch.keys()]).toEqual([keyOf("a")]);
    expect(ports.list()).toEqual([{ ...pod("a"), ofport: 1024 }]);
    expect(ports.isWanted(pod("a").owner)).toBe(true);
    expect([...ports.wanted]).toEqual([pod("a")]);
    expect(ports.flowsOf(pod("a").owner).length).toBeGreaterThan(0);
    expect(ports.flowsOf(pod("b").owner)).toEqual([]);
    await ports.connect(pod("b"), "now");
    expect(database.named("Interface", "b-p")).toMatchObject({ ofport: 1025 });
  });

  test("the same again changes nothing", async () => {
    await ports.connect(pod("a"), "now");
    const { length } = database.done;
    before = () => {
      throw new Error("nothing was to be set");
    };
    await ports.connect(pod("a"), "now");
    expect(database.done).toHaveLength(length);
  });

  test("gets what is new about it, of the row and of the flows", async () => {
    await ports.connect(pod("a"), "now");
    const flows = JSON.stringify(ports.flowsOf(pod("a").owner), (_, value) =>
      typeof value === "bigint" ? `${value}` : value,
    );
    const changed = pod("a", { mac: "02:00:00:00:01:02", netns: "/run/netns/other" });
    await ports.connect(changed, "now");
    expect(database.named("Port", "a-p")?.["external_ids"]).toMatchObject({
      "attached-mac": "02:00:00:00:01:02",
      "net-ns": "/run/netns/other",
    });
    expect(
      JSON.stringify(ports.flowsOf(pod("a").owner), (_, value) => (typeof value === "bigint" ? `${value}` : value)),
    ).not.toBe(flows);
    // A device more, and one less.
    const { device: _, ...without } = changed;
    await ports.connect({ ...without, device: "17" }, "now");
    expect(names()).toEqual(["a-p"]);
  });

  test.each([
    ["of an earlier device of the name", "a-p", "18"],
    ["of another name", "a-q", "17"],
  ])("takes the place of one %s", async (_name, port, device) => {
    await ports.connect(pod("a"), "now");
    const done = database.done.length;
    await ports.connect(pod("a", { port, device }), "now");
    expect(names()).toEqual([port]);
    // The earlier one went before it, and the switch had let go of it.
    expect(database.done[done]).toContain("mutate Bridge");
    expect(database.done[done]).not.toContain("insert Port");
  });

  test("takes the place of another pod's of the same name", async () => {
    await ports.connect(pod("a"), "now");
    await ports.connect(pod("b", { port: "a-p" }), "now");
    expect(ports.list().map(({ owner }) => owner.sandboxId)).toEqual(["b"]);
  });

  test("is not made where somebody else's has its name", async () => {
    await ports.connect(pod("a"), "now");
    database.change("Port", "a-p", { external_ids: ["map", []] });
    await roundTrip(db);
    await expect(ports.connect(pod("a"), "now")).rejects.toThrow("has a port of that name that is not ours");
  });

  test("that the switch makes itself says so, also where it stood otherwise", async () => {
    await ports.connect(pod("a"), "now");
    await ports.connect(pod("a", { type: "internal" }), "now");
    expect(database.named("Interface", "a-p")).toMatchObject({ type: "internal" });
    expect(ports.list()).toMatchObject([{ type: "internal" }]);
    await ports.connect(pod("b", { type: "internal" }), "now");
    expect(database.named("Interface", "b-p")).toMatchObject({ type: "internal" });
  });

  test("that the switch cannot make is an error with its reason, and told as long as it is so", async () => {
    database.problemOf = () => "no such device";
    await expect(ports.connect(pod("a"), "now")).rejects.toThrow("ovs-vswitchd has made no port (no such device)");
    expect([...ports.refused]).toEqual([[keyOf("a"), "no such device"]]);
    expect(ports.list()).toEqual([{ ...pod("a"), problem: "no such device" }]);
    database.problemOf = () => undefined;
    database.actAsSwitch();
    await roundTrip(db);
    expect([...ports.refused]).toEqual([]);
  });

  test("is left to be put right where the switch numbers it anew, and again while the flows for that are set", async () => {
    const numbers = [77, 78];
    before = async () => {
      await expect.poll(() => ports.list()[0]?.ofport).toBeDefined();
      database.change("Interface", "a-p", { ofport: numbers.shift() ?? 78 });
      await roundTrip(db);
    };
    expect(await ports.connect(pod("a"), "now")).toBe(false);
    const flows = onSwitch.get(keyOf("a"));
    await ports.reconcile();
    expect(onSwitch.get(keyOf("a"))).not.toEqual(flows);
    expect(await ports.connect(pod("a"), "now")).toBe(true);
  });

  test("whose device comes later is in the database when the call ends, and has flows once it has a number", async () => {
    database.problemOf = () => "no such device";
    const { device: _, ...later } = pod("a");
    await ports.connect(later, "later");
    expect([names(), onSwitch.size, ports.refused.size]).toEqual([["a-p"], 0, 0]);
    database.problemOf = () => undefined;
    database.actAsSwitch();
    await roundTrip(db);
    expect(ports.isHandled("a-p")).toBe(false);
    await ports.reconcile();
    expect([...onSwitch.keys()]).toEqual([keyOf("a")]);
  });

  test("whose flows are refused fails with that, and is told", async () => {
    before = () => {
      throw refused();
    };
    await expect(ports.connect(pod("a"), "now")).rejects.toThrow("the switch says no");
    expect([...ports.refused]).toEqual([[keyOf("a"), "the switch says no"]]);
    before = () => undefined;
    await ports.reconcile();
    expect([ports.refused.size, onSwitch.size]).toEqual([0, 1]);
  });

  test("is not waited for where the switch stays away", async () => {
    database.isSwitchThere = false;
    const connecting = ports.connect(pod("a"), "now");
    away.abort(refused(CniCode.tryAgainLater));
    await expect(connecting).rejects.toMatchObject({ code: 11 });
    await expect(ports.connect(pod("b"), "now")).rejects.toMatchObject({ code: 11 });
  });
});

describe("a pod that leaves", () => {
  test("takes its port and its flows with it, and nobody else's", async () => {
    await ports.connect(pod("a"), "now");
    await ports.connect(pod("b"), "now");
    expect(await ports.disconnect(pod("a").owner)).toBe(true);
    expect([names(), [...onSwitch.keys()]]).toEqual([["b-p"], [keyOf("b")]]);
    expect(ports.isWanted(pod("a").owner)).toBe(false);
    expect(await ports.disconnect(pod("a").owner)).toBe(true);
  });

  test("goes once the database answers again, its flows before", async () => {
    await ports.connect(pod("a"), "now");
    database.refuse = (operations) => (operations.includes("mutate Bridge") ? "timed out" : undefined);
    expect(await ports.disconnect(pod("a").owner)).toBe(false);
    expect([names(), onSwitch.size]).toEqual([["a-p"], 0]);
    expect(lines.join()).toContain("ports of pods go once the database can be reached");
    await expect(ports.reconcile()).rejects.toThrow(
      "Cannot remove the ports of pods that have left: 1 are still there",
    );
    database.refuse = () => undefined;
    await ports.reconcile();
    expect(names()).toEqual([]);
    await ports.reconcile();
  });

  test("loses its port also where the switch does not answer for its flows", async () => {
    await ports.connect(pod("a"), "now");
    before = () => {
      throw refused(CniCode.tryAgainLater);
    };
    expect(await ports.disconnect(pod("a").owner)).toBe(true);
    expect(names()).toEqual([]);
    expect(lines.join()).toContain("flows of pods go once the switch can be reached");
  });

  test("and comes back keeps its new port", async () => {
    await ports.connect(pod("a"), "now");
    const taking = Promise.withResolvers<void>();
    before = (changes) => ([...changes.values()].includes(undefined) ? taking.promise : undefined);
    const leaving = ports.disconnect(pod("a").owner);
    await ports.connect(pod("a"), "now");
    taking.resolve();
    await leaving;
    expect(names()).toEqual(["a-p"]);
  });
});

describe("a reconciliation", () => {
  test("makes a port again that somebody has taken away", async () => {
    await ports.connect(pod("a"), "now");
    database.change("Bridge", "br-int", { ports: ["set", []] });
    await roundTrip(db);
    await ports.reconcile();
    expect(names()).toEqual(["a-p"]);
    expect(lines.join()).toContain("a pod's port that is gone is made again");
  });

  test("takes ports away that nobody wants, and leaves what is no pod's of ours", async () => {
    await ports.connect(pod("a"), "now");
    const stray = freshPorts();
    await stray.connect(pod("b"), "now").catch(() => undefined);
    await roundTrip(db);
    expect([ports.isHandled("a-p"), ports.isHandled("b-p"), ports.isHandled("tap0")]).toEqual([false, false, true]);
    await ports.reconcile();
    expect(names()).toEqual(["a-p"]);
    expect(lines.join()).toContain("a port that nothing stands behind is removed");
  });

  test("gives flows again where the switch has numbered anew, or the node's part is another", async () => {
    await ports.connect(pod("a"), "now");
    onSwitch.clear();
    await ports.reconcile();
    expect(onSwitch.size).toBe(0);
    ports.follow({ ...context, podSubnets: [] }, set);
    await ports.reconcile();
    expect(onSwitch.size).toBe(1);
    const flows = onSwitch.get(keyOf("a"));
    database.change("Interface", "a-p", { ofport: 77 });
    await roundTrip(db);
    await ports.reconcile();
    expect(onSwitch.get(keyOf("a"))).not.toEqual(flows);
  });

  test("of many pods has the others go on where one is refused", async () => {
    for (const name of ["a", "b", "c"]) await ports.connect(pod(name), "now");
    onSwitch.clear();
    ports.follow({ ...context }, set);
    before = (changes) => {
      if (changes.has(keyOf("b"))) throw refused();
    };
    await expect(ports.reconcile()).rejects.toThrow("the switch says no");
    expect([...onSwitch.keys()].toSorted()).toEqual([keyOf("a"), keyOf("c")]);
    expect([...ports.refused.keys()]).toEqual([keyOf("b")]);
  });

  test("asks for all of it again where the switch was away", async () => {
    await ports.connect(pod("a"), "now");
    ports.follow({ ...context }, set);
    before = () => {
      throw refused(CniCode.tryAgainLater);
    };
    await expect(ports.reconcile()).rejects.toMatchObject({ code: 11 });
    expect(ports.refused.size).toBe(0);
    [before, onSwitch] = [() => undefined, new Map()];
    await ports.reconcile();
    expect(onSwitch.size).toBe(1);
  });
});

describe("ports of an earlier agent", () => {
  test("are taken over where something stands behind them, else they go", async () => {
    for (const name of ["a", "b"]) await ports.connect(pod(name), "now");
    const next = freshPorts();
    const sets = next.adopt(context, ({ owner }) => owner.sandboxId === "a");
    expect([...sets.keys()]).toEqual([keyOf("a")]);
    expect([...next.wanted].map(({ owner }) => owner.sandboxId)).toEqual(["a"]);
    expect(lines.join()).toContain("a port that nothing stands behind is removed");
    next.follow(context, set);
    await next.reconcile();
    expect(names()).toEqual(["a-p"]);
  });

  test("that do not say who they are cannot be kept", async () => {
    await ports.connect(pod("a"), "now");
    const ids = database.named("Port", "a-p")?.["external_ids"] as object;
    database.change("Port", "a-p", { external_ids: ["map", Object.entries({ ...ids, "attached-mac": "?" })] });
    await roundTrip(db);
    const next = freshPorts();
    expect(next.list()).toEqual([]);
    expect(next.adopt(context, () => true).size).toBe(0);
    await next.reconcile();
    expect(names()).toEqual([]);
  });
});

describe("a pod's project", () => {
  test("gives its VNID to flows and row when it has another", async () => {
    for (const name of ["a", "b"]) await ports.connect(pod(name), "now");
    await ports.connect(pod("c", { pod: { namespace: "other", name: "c", uid: "u" } }), "now");
    const { length } = database.done;
    await ports.followVnids(new Map(Object.entries({ shop: 0, other: 9 })));
    expect(database.done).toHaveLength(length + 1);
    expect(database.named("Port", "c-p")?.["external_ids"]).toMatchObject({ "pipette-vnid": "9" });
    expect([...ports.wanted].map(({ vnid }) => vnid)).toEqual([0, 0, 9]);
    await ports.followVnids(new Map());
    expect(database.done).toHaveLength(length + 1);
  });
});
