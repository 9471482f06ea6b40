import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseIp } from "../../../../shared/net/ip.ts";
import { DatabaseInMemory } from "../../../../test/fakes/ovsdb/database-in-memory.ts";
import { roundTrip } from "../../../../test/fakes/ovsdb/waiting.ts";
import type { TunnelOptions } from "../../../config/ovs-config.ts";
import {
  dropNodePort,
  ensureNodeBridge,
  gatewayPort,
  type NodeBridge,
  removeOverlay,
  tunnelPort,
  uplinkPort,
} from "./node-bridge.ts";
import { openDatabase, readInUserSpace, roundsOf, type SwitchDatabase, uplinkOf } from "./switch-database.ts";

let database: DatabaseInMemory;
let db: SwitchDatabase;
beforeEach(async () => {
  database = new DatabaseInMemory();
  await database.listen();
  db = openDatabase(database.address);
  await db.ready();
});
afterEach(async () => {
  db[Symbol.dispose]();
  await database[Symbol.asyncDispose]();
});

const tunnel = { name: "tun0", type: "geneve", checksum: false } as TunnelOptions;
const whole: NodeBridge = {
  name: "br-int",
  kind: "system",
  mac: "02:00:00:00:00:09",
  ports: [gatewayPort("gw0", "02:00:00:00:00:01", 1400), tunnelPort(tunnel, undefined), uplinkPort("nic0")],
};
const bridge = () => database.named("Bridge", "br-int");

/** What somebody else does: a port with its interface, on the bridge or on one of its own. */
function strangePort(name: string, ids: Readonly<Record<string, string>> = {}, on = "br-int", type = ""): void {
  const isThere = database.named("Bridge", on) !== undefined;
  const ports = ["set", [["named-uuid", "p"]]];
  database.transact([
    { op: "insert", table: "Interface", "uuid-name": "i", row: { name, type } },
    {
      op: "insert",
      table: "Port",
      "uuid-name": "p",
      row: { name, interfaces: ["set", [["named-uuid", "i"]]], external_ids: ["map", Object.entries(ids)] },
    },
    ...(isThere
      ? [{ op: "mutate", table: "Bridge", where: [["name", "==", on]], mutations: [["ports", "insert", ports]] }]
      : [
          { op: "insert", table: "Bridge", "uuid-name": "b", row: { name: on, datapath_type: "netdev", ports } },
          {
            op: "mutate",
            table: "Open_vSwitch",
            where: [],
            mutations: [["bridges", "insert", ["set", [["named-uuid", "b"]]]]],
          },
        ]),
  ]);
}

describe("the node's bridge", () => {
  test("is made with all that it needs, at once, and left alone from then on", async () => {
    await ensureNodeBridge(db, whole);
    expect(database.done).toHaveLength(1);
    expect(bridge()).toMatchObject({
      datapath_type: "system",
      fail_mode: "secure",
      protocols: ["OpenFlow10", "OpenFlow13", "OpenFlow15"],
      other_config: { "disable-in-band": "true", hwaddr: "02:00:00:00:00:09" },
    });
    expect(database.names("Port")).toEqual(["br-int", "gw0", "nic0", "tun0"]);
    expect(database.named("Interface", "br-int")).toMatchObject({ type: "internal" });
    expect(database.named("Interface", "gw0")).toMatchObject({
      type: "internal",
      ofport: 32_769,
      mac: "02:00:00:00:00:01",
      mtu_request: 1400,
    });
    expect(database.named("Interface", "tun0")).toMatchObject({ type: "geneve", ofport: 32_768 });
    expect(database.named("Interface", "nic0")).toMatchObject({ ofport: 32_770 });
    expect(database.named("Port", "gw0")?.["external_ids"]).toEqual({ "pipette-type": "gateway" });
    expect(uplinkOf(db.view, "br-int")).toBe("nic0");
    await ensureNodeBridge(db, whole);
    expect(database.done).toHaveLength(1);
  });

  test("without a MAC of its own has the one that comes", async () => {
    const { mac: _, ...plain } = whole;
    await ensureNodeBridge(db, plain);
    expect(bridge()?.["other_config"]).toEqual({ "disable-in-band": "true" });
  });

  test.each([
    ["fail_mode", { fail_mode: "standalone" }],
    ["protocols", { protocols: ["set", ["OpenFlow10", "OpenFlow13"]] }],
    [
      "other_config",
      {
        other_config: [
          "map",
          [
            ["disable-in-band", "false"],
            ["hwaddr", "02:00:00:00:00:09"],
          ],
        ],
      },
    ],
    ["other_config", { other_config: ["map", [["disable-in-band", "true"]]] }],
  ] as const)("gets its %s back, and keeps what others have configured", async (column, changed) => {
    await ensureNodeBridge(db, whole);
    const wanted = bridge()?.[column];
    database.change("Bridge", "br-int", changed);
    await roundTrip(db);
    await ensureNodeBridge(db, whole);
    expect(bridge()?.[column]).toEqual(wanted);
  });

  test("keeps settings that are not ours", async () => {
    await ensureNodeBridge(db, whole);
    database.change("Bridge", "br-int", { other_config: ["map", [["mac-table-size", "9"]]] });
    await roundTrip(db);
    await ensureNodeBridge(db, whole);
    expect(bridge()?.["other_config"]).toEqual({
      "mac-table-size": "9",
      "disable-in-band": "true",
      hwaddr: "02:00:00:00:00:09",
    });
  });

  test("of another kind is refused; one that says none is the kernel's", async () => {
    await ensureNodeBridge(db, whole);
    await expect(ensureNodeBridge(db, { ...whole, kind: "netdev" })).rejects.toThrow(
      'its "datapath_type" is "system", wanted "netdev"',
    );
    database.change("Bridge", "br-int", { datapath_type: "" });
    await roundTrip(db);
    await ensureNodeBridge(db, whole);
    await expect(ensureNodeBridge(db, { ...whole, kind: "netdev" })).rejects.toMatchObject({ code: 102 });
  });
});

describe("a port of the node", () => {
  test.each([
    ["type", { type: "vxlan" }],
    ["ofport_request", { ofport_request: 7 }],
    ["mac", { mac: "02:00:00:00:00:77" }],
    ["mtu_request", { mtu_request: 1500 }],
    ["options", { options: ["map", [["key", "flow"]]] }],
    [
      "options",
      {
        options: [
          "map",
          [
            ["key", "1"],
            ["remote_ip", "flow"],
          ],
        ],
      },
    ],
    [
      "options",
      {
        options: [
          "map",
          [
            ["key", "flow"],
            ["remote_ip", "flow"],
            ["csum", "true"],
          ],
        ],
      },
    ],
  ] as const)("gets its %s back", async (_column, changed) => {
    await ensureNodeBridge(db, whole);
    const wanted = database.named("Interface", "tun0");
    database.change("Interface", "tun0", changed);
    await roundTrip(db);
    await ensureNodeBridge(db, whole);
    const { mac = [], mtu_request: mtu = [], ...rest } = database.named("Interface", "tun0") ?? {};
    expect(rest).toEqual({ ...wanted, ofport: expect.anything() });
    expect([mac, mtu]).toEqual([[], []]);
    expect(database.done).toHaveLength(2);
  });

  test.each([
    ["on another bridge", "elsewhere", { "pipette-type": "gateway" }],
    ["without our mark", "br-int", {}],
    ["of another role", "br-int", { "pipette-type": "uplink" }],
  ])("is not made where the name is taken: %s", async (_name, on, ids) => {
    await ensureNodeBridge(db, { ...whole, ports: [] });
    strangePort("gw0", ids, on);
    await roundTrip(db);
    await expect(ensureNodeBridge(db, whole)).rejects.toThrow(
      'Cannot make the gateway port "gw0" on "br-int": Open vSwitch has a port of that name that is not ours',
    );
  });

  test("that is no more needed goes; pods' and others' stay", async () => {
    await ensureNodeBridge(db, whole);
    strangePort("pod0", { "pipette-type": "pod" });
    strangePort("tap0");
    await roundTrip(db);
    await ensureNodeBridge(db, { ...whole, ports: whole.ports.slice(0, 1) });
    expect(database.names("Port")).toEqual(["br-int", "gw0", "pod0", "tap0"]);
    await dropNodePort(db, "br-int", "tap0");
    await dropNodePort(db, "br-int", "absent");
    await dropNodePort(db, "br-int", "gw0");
    expect(database.names("Port")).toEqual(["br-int", "pod0", "tap0"]);
  });

  test.each([
    [{}, undefined, { remote_ip: "flow", key: "flow" }],
    [{ port: 7000 }, "10.0.0.2", { remote_ip: "flow", key: "flow", local_ip: "10.0.0.2", dst_port: "7000" }],
    [{ port: 7000, type: "gre" }, undefined, { remote_ip: "flow", key: "flow" }],
    [{ checksum: true }, undefined, { remote_ip: "flow", key: "flow", csum: "true" }],
  ] as const)("of a tunnel has its options: %j", (changes, localIp, options) => {
    const made = tunnelPort({ ...tunnel, ...changes } as TunnelOptions, localIp && parseIp(localIp));
    expect(made.interface.options).toEqual(options);
  });
});

describe("a clean-up", () => {
  const cleanUp = async () =>
    (await removeOverlay(database.address, "br-int")).map(({ did, problem }) => [did, problem]);

  test("takes the bridge with all that is ours", async () => {
    await ensureNodeBridge(db, whole);
    expect(await cleanUp()).toEqual([["undone", undefined]]);
    expect(database.names("Bridge")).toEqual([]);
    expect(await cleanUp()).toEqual([["was gone", undefined]]);
  });

  test("leaves a bridge that has nothing of ours, and of one that has others' ports takes ours", async () => {
    strangePort("tap0", {}, "br-int");
    expect(await cleanUp()).toEqual([["was gone", undefined]]);
    strangePort("gw0", { "pipette-type": "gateway" });
    const [[did, problem] = []] = await cleanUp();
    expect(did).toBe("failed");
    expect(problem).toContain('it has ports "tap0", which are not ours');
    expect(database.names("Port")).toEqual(["tap0"]);
  });
});

test("interfaces of the system that a switch in user space reads are told, but no pods' and none that are its own", async () => {
  strangePort("nic1", {}, "br-b");
  strangePort("nic0", {}, "br-a", "system");
  strangePort("pod0", { "pipette-type": "pod" }, "br-a");
  strangePort("gw0", {}, "br-a", "internal");
  await ensureNodeBridge(db, { ...whole, ports: [uplinkPort("nic9")] });
  await expect.poll(() => readInUserSpace(db.view)).toEqual(["nic0", "nic1"]);
});

test.each([
  ["7", 7],
  ["1", 1],
  ["0", undefined],
  ["x", undefined],
  ["1.5", undefined],
  ["99999999999", undefined],
])("the round of an earlier start is read back where it can be one: %s", async (text, round) => {
  await ensureNodeBridge(db, whole);
  const rounds = roundsOf(db, "br-int");
  expect(await rounds.loadRound()).toBeUndefined();
  await rounds.saveRound(3);
  await rounds.saveRound(4);
  await expect.poll(() => rounds.loadRound()).toBe(4);
  database.change("Bridge", "br-int", { external_ids: ["map", [["pipette-round", text]]] });
  await expect.poll(() => rounds.loadRound()).toBe(round);
});
