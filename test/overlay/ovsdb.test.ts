import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  insertBridge,
  insertPort,
  type Monitored,
  OvsdbClient,
  OvsdbCode,
  OvsdbError,
  removeBridge,
  removePorts,
  Transaction,
  transactAndApply,
  waitForOfport,
} from "../../agent/protocols/ovsdb/mod.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { roundTrip, waitUntil } from "../support/ovsdb.ts";
import { describeWith } from "../support/requires.ts";
import { OpenVswitch } from "./open-vswitch.ts";
import { schemaDifferences } from "./schema-differences.ts";

const monitored = {
  Open_vSwitch: ["cur_cfg", "next_cfg", "bridges", "ovs_version"],
  Bridge: ["name", "ports", "datapath_type", "fail_mode", "protocols", "external_ids"],
  Port: ["name", "interfaces", "external_ids"],
  Interface: ["name", "type", "ofport", "error", "mac_in_use", "mtu", "external_ids"],
} as const satisfies Monitored;
type Client = OvsdbClient<typeof monitored>;
type NewPort = Parameters<typeof insertPort>[2];

async function failureOf(promise: Promise<unknown>): Promise<OvsdbError> {
  const caught = await promise.then(
    () => new Error("It succeeded"),
    (error: unknown) => error,
  );
  if (caught instanceof OvsdbError) return caught;
  throw caught;
}

describeWith("the database of Open vSwitch", ["root", "openvswitch"], () => {
  let sandbox: NetworkSandbox;
  let ovs: OpenVswitch;
  let client: Client;

  const connect = (): Client => new OvsdbClient({ address: `unix:${ovs.socket}`, monitored });

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-ovsdb-");
    ovs = await OpenVswitch.start();
    client = connect();
    const transaction = new Transaction("make the bridge");
    insertBridge(transaction, {
      name: "br-int",
      bridge: { datapath_type: "netdev", fail_mode: "secure", protocols: ["OpenFlow15"], external_ids: { a: "b" } },
    });
    await transactAndApply(client, transaction, 30_000);
  });
  afterAll(async () => {
    client?.[Symbol.dispose]();
    await ovs?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  /** Adds ports and answers their interfaces' UUIDs, once ovs-vswitchd has acted. */
  async function addPorts(ports: readonly NewPort[], timeoutMs = 30_000) {
    const transaction = new Transaction(`add ${ports.length} ports`);
    const inserted = ports.map((port) => insertPort(transaction, "br-int", port));
    const outcome = await transactAndApply(client, transaction, timeoutMs);
    return inserted.map((rows) => outcome.uuidOf(rows.interface));
  }
  const internal = (name: string, more: NewPort["interface"] = {}): NewPort => ({
    name,
    interface: { type: "internal", ...more },
  });

  test("has the tables and columns that we think it has", async () => {
    const file = JSON.parse(readFileSync("/usr/share/openvswitch/vswitch.ovsschema", "utf8"));
    expect(schemaDifferences(file)).toEqual([]);
    expect(
      schemaDifferences(JSON.parse(await ovs.run("ovsdb-client", "get-schema", `unix:${ovs.socket}`, "Open_vSwitch"))),
    ).toEqual([]);
    // It would see one.
    delete file.tables.Controller;
    delete file.tables.Port.columns.tag;
    file.tables.Bridge.columns.ports.type.key.refTable = "Interface";
    file.tables.Interface.columns.mtu_request.type.max = 2;
    file.tables.Interface.columns.statistics.type.value = "string";
    expect(schemaDifferences(file)).toEqual([
      "column Bridge.ports is set uuid of Interface, wanted set uuid of Port",
      "column Port.tag is missing",
      "column Interface.mtu_request is set integer, wanted optional integer",
      "column Interface.statistics is map string to string, wanted map string to integer",
      "table Controller is missing",
    ]);
  });

  test("answers", async () => {
    await roundTrip(client);
  });

  test("a bridge and its ports are as ovs-vsctl reads them", async () => {
    const mac = "0a:00:00:00:00:01";
    const [gateway] = await addPorts([
      internal("gw0", { mac, mtu_request: 1450, external_ids: { owner: 'a "b" {c}', é: "日本" } }),
      { name: "patch0", interface: { type: "patch", options: { peer: "patch1" } }, port: { tag: 7 } },
    ]);
    expect(client.view.named("Bridge", "br-int")?.ports.size).toBe(3);
    const get = (...what: string[]) => ovs.vsctl("get", ...what);
    expect(await ovs.vsctl("list-ports", "br-int")).toBe("gw0\npatch0");
    expect(await get("Bridge", "br-int", "fail_mode", "protocols", "datapath_type", "external_ids")).toBe(
      "secure\n[OpenFlow15]\nnetdev\n{a=b}",
    );
    expect(await get("Interface", "gw0", "external_ids:owner")).toBe('"a \\"b\\" {c}"');
    expect(await ovs.vsctl("--bare", "--columns=name", "find", "Interface", 'external_ids:é="日本"')).toBe("gw0");
    expect(await get("Port", "patch0", "tag")).toBe("7");
    expect(await get("Interface", "gw0", "_uuid")).toBe(gateway);

    const row = client.view.named("Interface", "gw0");
    expect(String(row?.ofport)).toBe(await get("Interface", "gw0", "ofport"));
    expect(row).toMatchObject({ _uuid: gateway, mac_in_use: mac, mtu: 1450, error: undefined });
    // The device is there, as asked for, by the time the transaction is known to be applied.
    expect(await sandbox.node("ip -o link show gw0")).toMatch(/mtu 1450 .*link\/ether 0a:00:00:00:00:01/);
  });

  test("an interface's port number comes, or the reason why there is none", async () => {
    const [good, bad] = await addPorts([internal("of0", { ofport_request: 77 }), { name: "nodev0" }]);
    expect(await waitForOfport(client, { name: "of0" })).toBe(77);
    expect(await waitForOfport(client, { uuid: good ?? fail() })).toBe(77);
    expect(await failureOf(waitForOfport(client, { uuid: bad ?? fail() }))).toMatchObject({
      code: OvsdbCode.refused,
      message: expect.stringMatching(
        /ovs-vswitchd has made no port \(could not open network device nodev0 \(No such device\)\)/,
      ),
    });
    expect(await failureOf(waitForOfport(client, { name: "never" }, { timeoutMs: 20 }))).toMatchObject({
      code: OvsdbCode.notSeen,
    });
  });

  test("a port whose device comes later is waited for, by those who want to", async () => {
    await addPorts([{ name: "later0" }]);
    const ofport = waitForOfport(client, { name: "later0" }, { timeoutMs: 20_000, patient: true });
    expect(client.view.named("Interface", "later0")?.ofport).toBe(-1);
    await sandbox.node("ip link add later0 type veth peer name later1");
    expect(await ofport).toBeGreaterThan(0);
  });

  test("what is not watched cannot be waited for", async () => {
    using blind = new OvsdbClient({
      address: ovs.socket,
      monitored: { Open_vSwitch: ["next_cfg"], Interface: ["name"] },
    });
    expect(await failureOf(waitForOfport(blind, { name: "gw0" }))).toMatchObject({
      code: OvsdbCode.invalid,
      message: expect.stringContaining('"Interface.ofport" and "Interface.error" is not watched'),
    });
    const transaction = new Transaction("try");
    expect(await failureOf(transactAndApply(blind, transaction))).toMatchObject({ code: OvsdbCode.invalid });
    expect(transaction.steps).toEqual([]);
  });

  test("ports and bridges go with all that belongs to them", async () => {
    await addPorts([internal("go0"), internal("go1")]);
    const transaction = new Transaction("remove ports");
    const port = (name: string) => client.view.named("Port", name)?._uuid ?? fail();
    removePorts(transaction, "br-int", [port("go0"), port("go1")]);
    await transactAndApply(client, transaction);
    expect(client.view.named("Interface", "go0")).toBeUndefined();
    expect(await ovs.vsctl("list-ports", "br-int")).not.toContain("go");

    const made = new Transaction("make another bridge");
    const second = insertBridge(made, { name: "br-two", bridge: { datapath_type: "netdev" } });
    const outcome = await transactAndApply(client, made);
    expect(await ovs.vsctl("list-br")).toBe("br-int\nbr-two");
    const removed = new Transaction("remove it");
    removeBridge(removed, outcome.uuidOf(second.bridge));
    await transactAndApply(client, removed);
    expect(await ovs.vsctl("list-br")).toBe("br-int");
    expect(client.view.named("Port", "br-two")).toBeUndefined();
  });

  test("what others change is seen", async () => {
    const seen = client.waitForRow("Interface", (row) => row.name === "ext0" && row.ofport !== undefined, {
      timeoutMs: 10_000,
      action: "see the port of another",
    });
    await ovs.vsctl(
      "add-port",
      "br-int",
      "ext0",
      "--",
      "set",
      "Interface",
      "ext0",
      "type=internal",
      "external_ids:x=y",
    );
    expect((await seen).external_ids).toEqual(new Map([["x", "y"]]));
    await ovs.vsctl(
      "set",
      "Interface",
      "ext0",
      "external_ids:z=1",
      "--",
      "remove",
      "Interface",
      "ext0",
      "external_ids",
      "x",
    );
    await waitUntil(client, (view) => view.named("Interface", "ext0")?.external_ids.get("z"), {
      timeoutMs: 10_000,
      action: "see the change",
    });
    expect(client.view.named("Interface", "ext0")?.external_ids).toEqual(new Map([["z", "1"]]));
    const gone = waitUntil(client, (view) => view.named("Port", "ext0") === undefined || undefined, {
      timeoutMs: 10_000,
      action: "see it go",
    });
    await ovs.vsctl("del-port", "ext0");
    await gone;
  });

  describe("a transaction that fails", () => {
    test("names its operation, and nothing of it is there", async () => {
      const twice = new Transaction('add port "gw0"');
      twice.insert("Controller", { target: "unix:/never" });
      insertPort(twice, "br-int", internal("gw0"));
      expect(await failureOf(client.transact(twice))).toMatchObject({
        code: OvsdbCode.constraintViolation,
        operation: 5,
        mayHaveHappened: false,
        message: expect.stringMatching(/^Cannot add port "gw0": the commit is answered "constraint violation" \(/),
      });
      const nowhere = new Transaction('add port "p"');
      insertPort(nowhere, "br-none", internal("p"));
      expect(await failureOf(client.transact(nowhere))).toMatchObject({
        code: OvsdbCode.timedOut,
        operation: 0,
        message: expect.stringMatching(/operation 0 \(wait Bridge\) is answered "timed out"/),
      });
      const outside = new Transaction("ask for port 70000");
      outside.comment("port 70000");
      outside.update("Interface", [["name", "==", "gw0"]], { ofport_request: 70_000 });
      expect(await failureOf(client.transact(outside))).toMatchObject({
        code: OvsdbCode.constraintViolation,
        operation: 1,
      });
      const rehearsed = new Transaction("rehearse");
      insertPort(rehearsed, "br-int", internal("p"));
      rehearsed.abort();
      expect(await failureOf(client.transact(rehearsed))).toMatchObject({ code: OvsdbCode.aborted, operation: 4 });
      expect(await ovs.vsctl("--columns=name", "find", "Interface", "name=p")).toBe("");
    });

    test("after its time is cancelled at the server", async () => {
      const transaction = new Transaction("wait for a bridge");
      transaction.wait("Bridge", [["name", "==", "br-late"]], {
        columns: ["name"],
        until: "==",
        rows: [{ name: "br-late" }],
        timeoutMs: 10_000,
      });
      transaction.insert("Manager", { target: "ptcp:6640" });
      transaction.mutate("Bridge", [["name", "==", "br-late"]], [["external_ids", "insert", { late: "yes" }]]);
      expect(await failureOf(client.transact(transaction, 50))).toMatchObject({ code: OvsdbCode.late });
      await roundTrip(client);
      await ovs.vsctl("--no-wait", "add-br", "br-late");
      expect(await ovs.vsctl("get", "Bridge", "br-late", "external_ids")).toBe("{}");
      await ovs.vsctl("--no-wait", "del-br", "br-late");
    });

    test("by the unknown row of another is refused as a whole", async () => {
      const stranger = client.view.named("Interface", "gw0")?._uuid ?? fail();
      const transaction = new Transaction("refer to nothing");
      transaction.mutate("Bridge", [["name", "==", "br-int"]], [["ports", "insert", [stranger]]]);
      expect(await failureOf(client.transact(transaction))).toMatchObject({
        code: OvsdbCode.referentialIntegrityViolation,
      });
    });
  });

  test("selects, updates and counts what it meets", async () => {
    await addPorts([internal("s0", { external_ids: { kind: "s" } }), internal("s1", { external_ids: { kind: "s" } })]);
    const transaction = new Transaction("look");
    const ours = [["external_ids", "includes", { kind: "s" }]] as const;
    const updated = transaction.update("Interface", ours, { ingress_policing_rate: 100 });
    const mutated = transaction.mutate("Interface", ours, [["ingress_policing_rate", "*=", 3]]);
    const selected = transaction.select("Interface", ours, ["name", "ingress_policing_rate", "ofport_request"]);
    const none = transaction.select("Port", [["tag", "==", 4000]], ["name"]);
    transaction.comment("looked at");
    transaction.commit(true);
    const outcome = await client.transact(transaction);
    expect([outcome.countOf(updated), outcome.countOf(mutated)]).toEqual([2, 2]);
    expect(outcome.rowsOf(none)).toEqual([]);
    const rows = outcome.rowsOf(selected).toSorted((a, b) => (a.name < b.name ? -1 : 1));
    expect(rows).toEqual(
      ["s0", "s1"].map((name) => ({
        _uuid: client.view.named("Interface", name)?._uuid,
        name,
        ingress_policing_rate: 300,
        ofport_request: undefined,
      })),
    );
  });
});

function fail(): never {
  throw new Error("It is not there");
}
