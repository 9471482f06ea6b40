import { afterAll, beforeAll, expect, test } from "vitest";
import { insertBridge, OvsdbClient, Transaction, transactAndApply } from "../../agent/protocols/ovsdb/mod.ts";
import { openStream } from "../../agent/protocols/ovsdb/transport.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { waitUntil } from "../support/ovsdb.ts";
import { describeWith } from "../support/requires.ts";
import { OpenVswitch } from "./open-vswitch.ts";
import { addByVsctl, addDirectly, measurePace, pacedColumns, timed } from "./ovsdb-pace.ts";

/** Ports per side that are timed; with more of them, the times are printed. */
const paced = Number(process.env["PIPETTE_OVSDB_PACE"] ?? 2);

describeWith("many ports in the database of Open vSwitch", ["root", "openvswitch"], () => {
  let sandbox: NetworkSandbox;
  let ovs: OpenVswitch;
  let client: OvsdbClient<typeof pacedColumns>;
  const clients = new DisposableStack();

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-ovsdb-");
    ovs = await OpenVswitch.start();
    client = connect(ovs.socket);
    const transaction = new Transaction("make the bridge");
    insertBridge(transaction, { name: "br-int", bridge: { datapath_type: "netdev" } });
    await transactAndApply(client, transaction, 30_000);
  });
  afterAll(async () => {
    clients.dispose();
    await ovs?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  const connect = (address: string, open = openStream) =>
    clients.use(new OvsdbClient({ address, monitored: pacedColumns, open }));

  /** Name to port number and owner, as ovs-vsctl reads them. */
  async function interfacesByVsctl(): Promise<Map<string, string>> {
    const text = await ovs.vsctl("--format=json", "--columns=name,ofport,external_ids", "list", "Interface");
    const { data } = JSON.parse(text) as { data: [string, unknown, ["map", [string, string][]]][] };
    return new Map(data.map(([name, ofport, [, pairs]]) => [name, `${ofport} ${pairs.flat().join("=")}`]));
  }
  const interfacesOf = ({ view }: typeof client): Map<string, string> => {
    const rows = [...view.rows("Interface").values()];
    return new Map(rows.map((row) => [row.name, `${row.ofport} ${[...row.external_ids].flat().join("=")}`]));
  };
  const addressOf = (port: number) => `tcp:127.0.0.1:${port}`;

  test("a port takes its time, directly and by ovs-vsctl", async () => {
    const paces = await measurePace(ovs, client, paced);
    for (const { what, direct, vsctl } of paces) {
      expect([direct.length, vsctl.length]).toEqual([paced, paced]);
      if (paced > 2)
        console.log(`${what}: direct ${summary(direct)}, ovs-vsctl ${summary(vsctl)} (least median p90 ms)`);
    }
    expect([...interfacesOf(client).keys()]).toEqual(["br-int"]);
  });

  test("a thousand are added, seen, and read again by others", { timeout: 180_000 }, async () => {
    const names = Array.from({ length: 1000 }, (_, i) => `m${i}`);
    const once = await timed(() => addDirectly(client, names.slice(0, 900), 90_000));
    const inTurn = await timed(async () => {
      // Eight at a time, as pods come.
      const left = names.slice(900);
      const one = async (): Promise<void> => {
        for (let name = left.shift(); name !== undefined; name = left.shift())
          await addDirectly(client, [name], 90_000);
      };
      await Promise.all(Array.from({ length: 8 }, one));
    });
    if (paced > 2)
      console.log(`900 ports at once: ${once.toFixed(0)} ms; 100 alone, 8 at a time: ${inTurn.toFixed(0)} ms`);
    const expected = await interfacesByVsctl();
    expect(expected.size).toBe(1001);
    expect([...expected.values()].filter((value) => /^\d+ owner=pod-m\d+$/.test(value))).toHaveLength(1000);
    expect(interfacesOf(client)).toEqual(expected);

    const again = connect(ovs.socket);
    const seen = await timed(() => again.ready());
    if (paced > 2) console.log(`first state of 1,001 ports: ${seen.toFixed(1)} ms`);
    expect(interfacesOf(again)).toEqual(expected);

    // A byte at a time, and by whole rows, from a server that has not heard of another way.
    const pieces = connect(ovs.socket, (address, events, timeoutMs) =>
      openStream(address, { ...events, data: (chunk) => forEachByte(chunk, events.data) }, timeoutMs),
    );
    const whole = connect(ovs.socket, async (address, events, timeoutMs) => {
      const stream = await openStream(address, events, timeoutMs);
      return { ...stream, write: (bytes) => stream.write(replaced(bytes, "monitor_cond", "monitor_none")) };
    });
    await Promise.all([pieces.ready(), whole.ready()]);
    expect(interfacesOf(pieces)).toEqual(expected);
    expect(interfacesOf(whole)).toEqual(expected);
    await ovs.vsctl(
      "set",
      "Interface",
      "m7",
      "external_ids:late=1",
      "--",
      "del-port",
      "m8",
      "--",
      "clear",
      "Interface",
      "m9",
      "external_ids",
    );
    const late = { timeoutMs: 10_000, action: "see the change" };
    for (const each of [client, pieces, whole]) {
      await waitUntil(each, (view) => view.named("Interface", "m8") === undefined || undefined, late);
      expect(each.view.named("Interface", "m7")?.external_ids).toEqual(
        new Map([
          ["late", "1"],
          ["owner", "pod-m7"],
        ]),
      );
      expect(each.view.named("Interface", "m9")?.external_ids.size).toBe(0);
    }
  });

  test("over TCP too", async () => {
    await ovs.databaseControl("ovsdb-server/add-remote", "ptcp:6650:127.0.0.1");
    await ovs.databaseControl("ovsdb-server/add-remote", "ptcp:6651:[::1]");
    for (const address of [addressOf(6650), "tcp:[::1]:6651"]) {
      const remote = connect(address);
      await addDirectly(remote, [`t${address.length}`]);
      expect(interfacesOf(remote)).toEqual(await interfacesByVsctl());
    }
    const nobody = connect(addressOf(6652));
    await expect(nobody.ready(100)).rejects.toThrow(
      /^Cannot use the database: there is no connection to "tcp:127.0.0.1:6652" \(connecting fails with ECONNREFUSED\), wanted/,
    );
  });

  test("where many are added by ovs-vsctl, each is seen once", async () => {
    const seen: string[] = [];
    using _ = client.onChanges((changes) => {
      for (const { table, before, after } of changes)
        if (table === "Interface" && before === undefined) seen.push(String(after?.["name"]));
    });
    const names = Array.from({ length: 20 }, (_, i) => `v${i}`);
    await addByVsctl(ovs, names);
    await waitUntil(client, (view) => names.every((name) => view.named("Interface", name)?.ofport) || undefined, {
      timeoutMs: 10_000,
      action: "see the ports",
    });
    expect(seen.toSorted()).toEqual(names.toSorted());
  });
});

function summary(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(share * (sorted.length - 1))] ?? 0).toFixed(1);
  return `${at(0)} ${at(0.5)} ${at(0.9)}`;
}

function forEachByte(chunk: Uint8Array, take: (byte: Uint8Array) => void): void {
  for (let at = 0; at < chunk.length; at++) take(chunk.slice(at, at + 1));
}

/** Of the same length, so that what the client counts stays right. */
function replaced(bytes: Uint8Array, text: string, by: string): Uint8Array {
  return new TextEncoder().encode(new TextDecoder().decode(bytes).replace(text, by));
}
