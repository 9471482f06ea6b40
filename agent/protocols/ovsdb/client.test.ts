import { afterEach, describe, expect, test } from "vitest";
import { ErrorAnswer, type Handler, ScriptedDatabase, usual } from "../../../test/fakes/ovsdb/scripted-database.ts";
import { roundTrip, waitUntil } from "../../../test/fakes/ovsdb/waiting.ts";
import { OvsdbClient, type OvsdbState } from "./client.ts";
import { OvsdbError } from "./ovsdb-error.ts";
import { Transaction } from "./transaction.ts";
import type { RowChange } from "./view.ts";

const id = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`;
const monitored = { Open_vSwitch: ["cur_cfg"], Interface: ["name", "ofport", "error"] } as const;
const state = {
  Open_vSwitch: { [id(1)]: { initial: { cur_cfg: 3 } } },
  Interface: { [id(2)]: { initial: { name: "p1", ofport: 4 } } },
};

const clients: OvsdbClient<typeof monitored>[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client[Symbol.dispose]();
});

interface Bench {
  readonly database: ScriptedDatabase;
  readonly client: OvsdbClient<typeof monitored>;
  readonly states: OvsdbState[];
}

function connect(handler: Handler = usual(state), timing: Record<string, number> = {}): Bench {
  const database = new ScriptedDatabase(handler);
  const client = new OvsdbClient({
    address: "/run/x.sock",
    monitored,
    open: database.open,
    timing: { requestMs: 2000, probeMs: 5000, connectMs: 1000, retryFirstMs: 1, retryMostMs: 8, ...timing },
  });
  clients.push(client);
  const states: OvsdbState[] = [];
  client.onState((each) => states.push(each));
  return { database, client, states };
}

async function failureOf(promise: Promise<unknown>): Promise<OvsdbError> {
  const caught = await promise.then(
    () => new Error("It succeeded"),
    (error: unknown) => error,
  );
  if (caught instanceof OvsdbError) return caught;
  throw caught;
}

function insertion(): Transaction {
  const transaction = new Transaction('add port "p9"');
  transaction.insert("Port", { name: "p9" });
  return transaction;
}
const inserted = [{ uuid: ["uuid", id(9)] }];
const bounds = { timeoutMs: 20_000, action: "wait" };
const change = (n: number, row: unknown) => ({
  method: "update2",
  params: ["pipette", { Interface: { [id(n)]: row } }],
  id: null,
});

describe("a client", () => {
  test("asks for the state, then for what it is told to, a byte at a time", async () => {
    const { database, client, states } = connect(usual(state, ({ method }) => (method === "transact" ? inserted : [])));
    database.pieceBytes = 1;
    const outcome = await client.transact(insertion());
    expect(outcome.uuidOf({ at: 0, namedUuid: "row0" })).toBe(id(9));
    expect(client.view.named("Interface", "p1")).toEqual({ _uuid: id(2), name: "p1", ofport: 4, error: undefined });
    expect(database.last.asked.map(({ method, params }) => [method, params])).toEqual([
      [
        "monitor_cond",
        [
          "Open_vSwitch",
          "pipette",
          { Open_vSwitch: [{ columns: ["cur_cfg"] }], Interface: [{ columns: ["name", "ofport", "error"] }] },
        ],
      ],
      ["transact", ["Open_vSwitch", { op: "insert", table: "Port", row: { name: "p9" }, "uuid-name": "row0" }]],
    ]);
    expect(states).toEqual([{ t: "ready" }]);
  });

  test("writes as much as the socket takes, and the rest when there is room", async () => {
    const { database, client } = connect(usual(state, () => inserted));
    await client.ready();
    database.last.takes = 7;
    const answer = client.transact(insertion());
    for (let i = 0; i < 100; i++) {
      await Promise.resolve();
      database.last.drain();
    }
    await answer;
  });

  test("watches by whole rows where the server knows no other way", async () => {
    const { database, client } = connect(({ method }) => {
      if (method !== "monitor") return new ErrorAnswer("unknown method");
      return { Interface: { [id(2)]: { new: { name: "p1", ofport: ["set", []], error: ["set", []] } } } };
    });
    await client.ready();
    const ofport = client.waitForRow("Interface", (row) => row.ofport !== undefined, bounds);
    const row = { old: { ofport: ["set", []] }, new: { name: "p1", ofport: 7, error: ["set", []] } };
    database.last.send({ method: "update", params: ["pipette", { Interface: { [id(2)]: row } }], id: null });
    expect((await ofport).ofport).toBe(7);
  });

  test("answers the server's echo", async () => {
    const { database, client } = connect();
    await client.ready();
    database.last.send({ method: "echo", params: [], id: "echo" });
    await roundTrip(client);
    expect(database.last.asked).toContainEqual({ id: "echo", result: [], error: null });
  });
});

describe("waiting for rows", () => {
  test("ends with a row that is there, or comes, or changes", async () => {
    const { database, client } = connect();
    await client.ready();
    const named = (name: string) => client.waitForRow("Interface", (row) => row.name === name, bounds);
    expect(await named("p1")).toMatchObject({ ofport: 4 });
    const coming = named("p2");
    const gone = waitUntil(
      client,
      (view) => (view.named("Interface", "p1") === undefined ? "gone" : undefined),
      bounds,
    );
    database.last.send(change(3, { insert: { name: "p2" } }));
    expect(await coming).toMatchObject({ _uuid: id(3), ofport: undefined });
    database.last.send(change(2, { delete: null }));
    expect(await gone).toBe("gone");
  });

  test("ends with the time, the caller's signal, the predicate's own error, or the client", async () => {
    const { database, client } = connect();
    await client.ready();
    const never = (more: object) => failureOf(client.waitForRow("Interface", () => false, { ...bounds, ...more }));
    expect(await never({ timeoutMs: 5, action: 'see "p2"' })).toMatchObject({
      code: "not seen",
      message: 'Cannot see "p2": the database has not come to show it, wanted it within 5 ms',
    });
    const abort = new AbortController();
    const aborted = never({ signal: abort.signal });
    abort.abort();
    const givenUp = { code: "not seen", message: expect.stringContaining("the caller has given up") };
    expect(await aborted).toMatchObject(givenUp);
    expect(await never({ signal: abort.signal })).toMatchObject(givenUp);
    const broken = client.waitForRow("Interface", (row) => row.name === "p1" || fail("a mistake"), bounds);
    expect((await broken).name).toBe("p1");
    await expect(client.waitForRow("Interface", () => fail("a mistake"), bounds)).rejects.toThrow("a mistake");
    const later = client.waitForRow("Interface", (row) => row.name === "p2" && fail("a mistake"), bounds);
    database.last.send(change(3, { insert: { name: "p2" } }));
    await expect(later).rejects.toThrow("a mistake");
    const closed = never({ action: "see it" });
    client[Symbol.dispose]();
    expect(await closed).toMatchObject({
      code: "closed",
      message: expect.stringContaining("Cannot see it: the client"),
    });
    expect(await never({})).toMatchObject({ code: "closed" });
  });

  test("looks at everything again with the next connection, also at what is as it was", async () => {
    const { database, client } = connect();
    await client.ready();
    database.last.end();
    expect(await client.waitForRow("Interface", (row) => row.name === "p1", bounds)).toMatchObject({ _uuid: id(2) });
    expect(database.connections).toHaveLength(2);
  });

  test("looks at nothing that is out of date", async () => {
    const { database, client } = connect();
    await client.ready();
    database.refusal = "connecting fails with ENOENT";
    database.last.end();
    const p1 = client.waitForRow("Interface", (row) => row.name === "p1", bounds);
    await Bun.sleep(5);
    expect(client.view.isCurrent).toBe(false);
    expect(client.view.named("Interface", "p1")).toBeDefined();
    database.handler = usual({ Interface: { [id(7)]: { initial: { name: "p1" } } } });
    database.refusal = undefined;
    expect(await p1).toMatchObject({ _uuid: id(7) });
  });
});

describe("a connection that ends", () => {
  test("is followed by another, and listeners hear what is different", async () => {
    const { database, client, states } = connect();
    const changes: (readonly RowChange[])[] = [];
    client.onChanges((each) => changes.push(each));
    await client.ready();
    expect(changes.splice(0).flat()).toHaveLength(2);
    database.handler = usual({ ...state, Interface: {} });
    database.last.end("the connection broke (ECONNRESET)");
    await waitUntil(client, (view) => view.rows("Interface").size === 0 || undefined, bounds);
    expect(changes.flat()).toMatchObject([{ table: "Interface", uuid: id(2), after: undefined }]);
    expect(states).toEqual([
      { t: "ready" },
      { t: "pausing", reason: "the connection broke (ECONNRESET)" },
      { t: "connecting" },
      { t: "ready" },
    ]);
  });

  test("fails what was asked over it, as something that may have happened", async () => {
    const { database, client } = connect();
    await client.ready();
    const asked = client.transact(insertion());
    await Bun.sleep(1);
    database.last.end();
    expect(await failureOf(asked)).toMatchObject({
      code: "disconnected",
      mayHaveHappened: true,
      message: 'Cannot add port "p9": the server has closed the connection before the answer',
    });
  });

  test("is known at once: what is asked right then goes over the next", async () => {
    const { database, client } = connect(usual(state, () => inserted));
    await client.ready();
    const first = database.last;
    first.end();
    expect(client.state.t).toBe("pausing");
    await client.transact(insertion());
    expect(database.last).not.toBe(first);
  });

  test("while it is made is told of once", async () => {
    using client = new OvsdbClient({
      address: "/run/x.sock",
      monitored,
      open: async (_, events) => {
        events.closed("the connection broke (ECONNRESET)");
        throw new Error("connecting fails with ECONNRESET");
      },
      timing: { retryFirstMs: 1 },
    });
    const states: string[] = [];
    client.onState(({ t }) => states.push(t));
    await until(() => states.length > 4);
    // The first attempt begins before anybody can listen.
    const afterwards = states.slice(states.indexOf("pausing"), 4);
    expect(afterwards).toEqual(["pausing", "connecting", "pausing", "connecting"].slice(0, afterwards.length));
    expect(client.state.t).not.toBe("ready");
  });

  test("lets new requests wait for the next, for as long as they may", async () => {
    const { database, client } = connect(usual(state, () => inserted));
    database.refusal = "connecting fails with ENOENT";
    await client.ready().catch(() => undefined);
    database.last.end();
    await Bun.sleep(3);
    expect(await failureOf(client.transact(insertion(), 20))).toMatchObject({
      code: "unreachable",
      mayHaveHappened: false,
      message:
        'Cannot add port "p9": there is no connection to "/run/x.sock" (connecting fails with ENOENT), wanted one within 20 ms',
    });
    const waiting = client.transact(insertion());
    database.refusal = undefined;
    await waiting;
  });

  test("soon after it began makes the pauses grow, up to the longest", async () => {
    const { database, client } = connect(usual(state), { retryFirstMs: 20, retryMostMs: 80 });
    const times: number[] = [];
    client.onState(({ t }) => {
      if (t === "connecting") times.push(performance.now());
      if (t === "ready") queueMicrotask(() => database.last.end());
    });
    await until(() => times.length > 9);
    const pauses = times.slice(1).map((time, i) => time - (times[i] ?? 0));
    // The first is from the second attempt to the third. Timers are early by what the loop's turn had taken when they
    // were set, and much too late on a busy machine.
    expect(pauses[0]).toBeGreaterThan(25);
    expect(Math.min(...pauses.slice(1))).toBeGreaterThan(50);
    // Without a longest one they would come to 1,280 and more.
    expect(Math.min(...pauses.slice(5))).toBeLessThan(500);
  });

  test("by a server that has gone silent is noticed by an echo", async () => {
    const { database, client, states } = connect(usual(state), { probeMs: 20, requestMs: 100 });
    await client.ready();
    await until(() => database.last.asked.filter(({ method }) => method === "echo").length >= 2);
    expect(database.connections).toHaveLength(1);
    const answer = database.handler;
    database.handler = () => undefined;
    await until(() => states.length >= 2);
    expect(states[1]).toEqual({ t: "pausing", reason: "the server has said nothing for 40 ms" });
    expect(database.connections[0]?.closed).toBe(true);
    database.handler = answer;
    await client.ready(2000);
  });
});

describe("requests", () => {
  test("that the server refuses as a whole", async () => {
    const error = { error: "unknown database", details: 'transact request specifies unknown database "x"' };
    const { client } = connect(usual(state, () => new ErrorAnswer(error)));
    expect(await failureOf(client.transact(insertion()))).toMatchObject({
      code: "unknown database",
      message: expect.stringMatching(/^Cannot add port "p9": the server answers "unknown database" \(transact /),
    });
  });

  test("without an answer end in time and are cancelled", async () => {
    const { database, client } = connect();
    await client.ready();
    const failure = await failureOf(client.transact(insertion(), 10));
    expect(failure).toMatchObject({ code: "late", mayHaveHappened: true });
    expect(failure.message).toMatch(/^Cannot add port "p9": no answer came, wanted one within/);
    expect(database.last.asked.at(-1)).toEqual({ method: "cancel", params: [2], id: null });
  });

  test("of no operations, or too long, are not sent", async () => {
    const { database, client } = connect();
    await client.ready();
    expect(await failureOf(client.transact(new Transaction("do nothing")))).toMatchObject({ code: "invalid" });
    const long = new Transaction("write a book");
    for (let i = 0; i < 33; i++) long.comment("x".repeat(1024 * 1024));
    expect(await failureOf(client.transact(long))).toMatchObject({ code: "invalid", mayHaveHappened: false });
    expect(database.last.asked).toHaveLength(1);
  });

  test("after the client is closed fail, and closing twice is nothing", async () => {
    const { database, client, states } = connect();
    await client.ready();
    const running = failureOf(client.transact(insertion()));
    client[Symbol.dispose]();
    client[Symbol.dispose]();
    expect(await running).toMatchObject({ code: "disconnected" });
    expect(await failureOf(client.ready())).toMatchObject({ code: "closed" });
    expect(database.last.closed).toBe(true);
    await Bun.sleep(20);
    expect(database.connections).toHaveLength(1);
    expect(states.at(-1)).toEqual({ t: "closed" });
  });

  test("that wait for a connection fail when the client is closed", async () => {
    const { database, client } = connect();
    database.refusal = "connecting fails with ENOENT";
    database.connections[0]?.end();
    await Bun.sleep(2);
    const waiting = failureOf(client.transact(insertion()));
    client[Symbol.dispose]();
    expect((await waiting).code).toMatch(/closed|disconnected/);
  });
});

async function until(condition: () => boolean): Promise<void> {
  const latest = performance.now() + 4000;
  while (!condition()) {
    if (performance.now() > latest) throw new Error("It has not come to that");
    await Bun.sleep(1);
  }
}

function fail(message: string): never {
  throw new Error(message);
}
