import { describe, expect, test } from "vitest";
import { ErrorAnswer, type Handler, ScriptedDatabase, usual } from "../../../test/fakes/ovsdb/scripted-database.ts";
import { roundTrip } from "../../../test/support/ovsdb.ts";
import { random } from "../../../test/support/random.ts";
import { OvsdbClient } from "./client.ts";
import { OvsdbError } from "./ovsdb-error.ts";
import { Transaction } from "./transaction.ts";

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const monitored = { Interface: ["name", "ofport", "external_ids"] } as const;
const state = { Interface: { [id(2)]: { initial: { name: "p1", ofport: 4, external_ids: ["map", [["a", "b"]]] } } } };

function clientOf(database: ScriptedDatabase): OvsdbClient<typeof monitored> {
  const timing = { requestMs: 200, probeMs: 5000, connectMs: 200, retryFirstMs: 1, retryMostMs: 4 };
  return new OvsdbClient({ address: "/run/x.sock", monitored, open: database.open, timing });
}

/** Why the client's first connection ended. */
async function firstEnd(handler: Handler): Promise<string> {
  const database = new ScriptedDatabase(handler);
  using client = clientOf(database);
  const { promise, resolve } = Promise.withResolvers<string>();
  using _ = client.onState((each) => {
    if (each.t === "pausing") resolve(each.reason);
  });
  const reason = await Promise.race([promise, Bun.sleep(1000).then(() => "nothing")]);
  expect(database.connections[0]?.closed).toBe(true);
  return reason;
}

const update = (params: unknown, method = "update2") => ({ method, params, id: null });

describe("a server that does wrong loses its connection", () => {
  const answers: readonly [what: string, answer: unknown, reason: RegExp][] = [
    ["no tables", [], /^the state of the database cannot be read: the tables are \[\], wanted an object$/],
    ["a strange table", { Bridge: {} }, /^the state of the database cannot be read: table "Bridge" was not asked for$/],
    ["a change of nothing", { Interface: { [id(1)]: { modify: {} } } }, /changes, and was not there$/],
    ["a refusal", new ErrorAnswer("not allowed"), /^the server answers "not allowed" to monitor_cond$/],
    ["no answer", undefined, /^the server has not answered monitor_cond within 200 ms$/],
  ];
  test.each(answers)("at the beginning: %s", async (_, answer, reason) => {
    expect(await firstEnd(usual(answer))).toMatch(reason);
  });

  test("at the beginning: no way to watch at all", async () => {
    const reason = await firstEnd(() => new ErrorAnswer("unknown method"));
    expect(reason).toBe('the server answers "unknown method" to monitor');
  });

  const later: readonly [what: string, message: unknown, reason: RegExp][] = [
    ["an update of another form", update(["pipette", {}], "update"), /it belongs to no monitor of ours$/],
    ["an update of another monitor", update(["other", {}]), /it belongs to no monitor of ours$/],
    ["an update without tables", update(["pipette"]), /it belongs to no monitor of ours$/],
    ["an update of no row", update(["pipette", { Interface: { [id(9)]: { delete: null } } }]), /was not there$/],
    ["the database is gone", update(["pipette"], "monitor_canceled"), /the database is not served any more$/],
    ["noise", "HTTP/1.1 400", /^a message begins with the byte 0x48$/],
    ["an answer to nothing", { id: 77, result: [], error: null }, /^an answer is to request 77, which was never made$/],
  ];
  test.each(later)("later: %s", async (_, message, reason) => {
    const handler = usual(state);
    expect(
      await firstEnd((asked, connection) => {
        queueMicrotask(() => connection.send(message));
        return handler(asked, connection);
      }),
    ).toMatch(reason);
  });

  test("an update before its state belongs to nothing yet", async () => {
    const reason = await firstEnd((_, connection) => {
      connection.send(update(["pipette", {}]));
      return state;
    });
    expect(reason).toMatch(/it belongs to no monitor of ours$/);
  });

  test("notifications of later versions are passed over", async () => {
    const database = new ScriptedDatabase(usual(state));
    using client = clientOf(database);
    await client.ready();
    database.last.send(update(["x"], "locked"));
    await roundTrip(client);
    expect(database.connections).toHaveLength(1);
  });

  test("a listener that throws harms nobody", async () => {
    const database = new ScriptedDatabase(usual(state));
    using client = clientOf(database);
    const thrown: unknown[] = [];
    const hear = (error: unknown) => thrown.push(error);
    const others = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.on("uncaughtException", hear);
    client.onChanges(() => {
      throw new Error("a mistake");
    });
    let heard = 0;
    client.onChanges(() => heard++);
    await client.ready();
    await roundTrip(client);
    process.off("uncaughtException", hear);
    for (const other of others) process.on("uncaughtException", other);
    expect(heard).toBe(1);
    expect(thrown).toEqual([new Error("a mistake")]);
    expect(database.connections).toHaveLength(1);
  });
});

const rounds = Number(process.env["PIPETTE_FUZZ_ROUNDS"] ?? 60);

describe("damaged streams", () => {
  const stream = new TextEncoder().encode(
    [
      { id: 1, result: state, error: null },
      update(["pipette", { Interface: { [id(3)]: { insert: { name: "p2", external_ids: ["map", []] } } } }]),
      { method: "echo", params: [], id: "echo" },
      update(["pipette", { Interface: { [id(2)]: { modify: { ofport: ["set", []] } } } }]),
      { id: 2, result: [{ count: 1 }], error: null },
      update(["pipette", { Interface: { [id(3)]: { delete: null } } }]),
    ]
      .map((message) => JSON.stringify(message))
      .join(""),
  );

  function damage(seed: number): Uint8Array {
    const next = random(seed);
    let bytes = stream.slice();
    for (let times = 1 + next(4); times > 0; times--) {
      const at = next(bytes.length);
      const kind = next(4);
      if (kind === 0) bytes[at] = next(256);
      else if (kind === 1) bytes = bytes.slice(0, at + 1);
      else if (kind === 2) bytes = Uint8Array.from([...bytes.slice(0, at), ...bytes.slice(at + 1 + next(30))]);
      else bytes = Uint8Array.from([...bytes.slice(0, at), ...bytes.slice(next(bytes.length))]);
    }
    return bytes;
  }

  test("end in an answer, an error of ours or the next connection, never in anything else", async () => {
    const ends = new Map<string, number>();
    for (let seed = 1; seed <= rounds; seed++) {
      const next = random(seed);
      const database = new ScriptedDatabase(() => undefined);
      database.pieceBytes = 1 + next(40);
      using client = clientOf(database);
      await Bun.sleep(0);
      const transaction = new Transaction("try");
      transaction.delete("Port", []);
      database.handler = () => undefined;
      const asked = client.transact(transaction, 30).then(
        () => "answered",
        (error: unknown) => (error instanceof OvsdbError ? error.code : Promise.reject(error)),
      );
      const first = database.last;
      const damaged = damage(seed);
      // The second request goes out once the state has come.
      first.sendBytes(damaged.slice(0, 200));
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      first.sendBytes(damaged.slice(200));
      first.end();
      const end = await asked;
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    expect([...ends.keys()].filter((end) => !known.has(end))).toEqual([]);
    expect(ends.get("answered") ?? 0).toBeGreaterThan(0);
    expect(ends.get("disconnected") ?? 0).toBeGreaterThan(0);
  });
  const known = new Set(["answered", "disconnected", "unreachable", "late", "malformed", "refused"]);
});
