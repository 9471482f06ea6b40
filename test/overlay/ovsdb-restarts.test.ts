import { afterEach, beforeEach, expect, test } from "vitest";
import type { OvsdbState } from "../../agent/protocols/ovsdb/client.ts";
import {
  insertBridge,
  insertPort,
  type Monitored,
  OvsdbClient,
  OvsdbError,
  type RowChange,
  Transaction,
  transactAndApply,
  waitForOfport,
} from "../../agent/protocols/ovsdb/mod.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { roundTrip, waitUntil } from "../support/ovsdb.ts";
import { describeWith } from "../support/requires.ts";
import { OpenVswitch } from "./open-vswitch.ts";

const monitored = {
  Open_vSwitch: ["cur_cfg", "next_cfg"],
  Bridge: ["name", "ports"],
  Interface: ["name", "ofport", "error", "external_ids"],
} as const satisfies Monitored;

/** ovs-vswitchd looks for its database at growing intervals, of 8 s at most. */
const recoveryMs = 20_000;

describeWith("the client of the database through restarts", ["root", "openvswitch"], () => {
  let sandbox: NetworkSandbox;
  let ovs: OpenVswitch;
  let client: OvsdbClient<typeof monitored>;
  let states: OvsdbState[];
  let changes: RowChange[];

  beforeEach(async () => {
    sandbox = await NetworkSandbox.enter("pt-ovsdb-");
    ovs = await OpenVswitch.start();
    states = [];
    changes = [];
    client = new OvsdbClient({ address: ovs.socket, monitored });
    client.onState((state) => states.push(state));
    client.onChanges((each) => changes.push(...each));
    const transaction = new Transaction("make the bridge");
    insertBridge(transaction, { name: "br-int", bridge: { datapath_type: "netdev" } });
    await transactAndApply(client, transaction, 30_000);
    await addPort("gw0");
  });
  afterEach(async () => {
    client?.[Symbol.dispose]();
    await ovs?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  async function addPort(name: string): Promise<number> {
    const transaction = new Transaction(`add port "${name}"`);
    const rows = insertPort(transaction, "br-int", { name, interface: { type: "internal", external_ids: { name } } });
    const outcome = await transactAndApply(client, transaction, recoveryMs);
    return await waitForOfport(client, { uuid: outcome.uuidOf(rows.interface) }, { timeoutMs: recoveryMs });
  }

  test.each(["SIGTERM", "SIGKILL"] as const)(
    "ovsdb-server ends by %s while it is watched, and comes again",
    async (signal) => {
      const ofport = client.view.named("Interface", "gw0")?.ofport;
      changes.length = 0;
      await ovs.stop("ovsdb-server", signal);
      for (let i = 0; i < 200 && client.state.t === "ready"; i++) await Bun.sleep(5);
      const meanwhile = addPort("p1");
      expect(client.view.isCurrent).toBe(false);
      expect(client.view.named("Interface", "gw0")).toMatchObject({ ofport });
      const impatient = new Transaction("look");
      impatient.select("Bridge", [], ["name"]);
      await expect(client.transact(impatient, 50)).rejects.toThrow(
        /^Cannot look: there is no connection to "\/.*\(.*\), wanted/,
      );

      await ovs.startDatabase();
      // What was asked for meanwhile is carried out, by a database that still has everything.
      expect(await meanwhile).toBeGreaterThan(0);
      expect(client.view.named("Interface", "gw0")).toMatchObject({ ofport });
      expect(changes.filter(({ after }) => after === undefined)).toEqual([]);
      expect(await ovs.vsctl("list-ports", "br-int")).toBe("gw0\np1");
      expect(states.filter(({ t }) => t === "ready")).toHaveLength(2);
      expect(await addPort("p2")).toBeGreaterThan(0);
    },
  );

  test("what happened while nobody watched is told", async () => {
    await ovs.stop("ovs-vswitchd");
    await ovs.stop("ovsdb-server", "SIGKILL");
    changes.length = 0;
    // Changes the file, as another server in the meantime would.
    await ovs.run(
      "ovsdb-tool",
      "transact",
      `${ovs.directory}/conf.db`,
      JSON.stringify([
        "Open_vSwitch",
        {
          op: "mutate",
          table: "Interface",
          where: [["name", "==", "gw0"]],
          mutations: [["external_ids", "insert", ["map", [["new", "1"]]]]],
        },
        { op: "insert", table: "Interface", "uuid-name": "i", row: { name: "born" } },
        {
          op: "insert",
          table: "Port",
          "uuid-name": "p",
          row: { name: "born", interfaces: ["set", [["named-uuid", "i"]]] },
        },
        { op: "mutate", table: "Bridge", where: [], mutations: [["ports", "insert", ["set", [["named-uuid", "p"]]]]] },
      ]),
    );
    await ovs.startDatabase();
    await waitUntil(client, (view) => view.named("Interface", "born"), { timeoutMs: 10_000, action: "see it" });
    expect(changes.map(({ table, before, after }) => `${table} ${before?.["name"]} ${after?.["name"]}`).sort()).toEqual(
      ["Bridge br-int br-int", "Interface gw0 gw0", "Interface undefined born"],
    );
    expect(client.view.named("Interface", "gw0")?.external_ids.get("new")).toBe("1");
  });

  test("a database that is frozen is noticed, and so is its thaw", async () => {
    const quick = { requestMs: 1000, probeMs: 100 };
    using watching = new OvsdbClient({ address: ovs.socket, monitored, timing: quick });
    const reasons: string[] = [];
    watching.onState((state) => state.t === "pausing" && reasons.push(state.reason));
    await watching.ready();
    await ovs.stop("ovsdb-server", "SIGSTOP");
    const asked = roundTrip(watching, 5000).catch((error: unknown) => error);
    for (let i = 0; i < 400 && reasons.length === 0; i++) await Bun.sleep(5);
    expect(reasons[0]).toBe("the server has said nothing for 200 ms");
    expect(await asked).toMatchObject({ code: "disconnected", mayHaveHappened: true });
    expect(watching.view.isCurrent).toBe(false);
    await ovs.stop("ovsdb-server", "SIGCONT");
    await watching.ready(10_000);
    expect(watching.view.named("Interface", "gw0")?.ofport).toBeGreaterThan(0);
  });

  test("without ovs-vswitchd the database takes a change, and it is known not to be applied until it is back", async () => {
    await ovs.stop("ovs-vswitchd");
    const transaction = new Transaction('add port "late"');
    const rows = insertPort(transaction, "br-int", { name: "late", interface: { type: "internal" } });
    const failure = await transactAndApply(client, transaction, 200).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OvsdbError);
    expect(failure).toMatchObject({
      code: "not seen",
      mayHaveHappened: true,
      message: expect.stringMatching(/^Cannot add port "late" by ovs-vswitchd, which is to reach configuration 3: /),
    });
    expect(rows.interface.namedUuid).toBe("row1");
    expect(client.view.named("Interface", "late")).toMatchObject({ ofport: undefined });
    const ofport = waitForOfport(client, { name: "late" }, { timeoutMs: recoveryMs });
    await ovs.startSwitch();
    expect(await ofport).toBeGreaterThan(0);
    expect(states.filter(({ t }) => t === "pausing")).toEqual([]);
  });
});
