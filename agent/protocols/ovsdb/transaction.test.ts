import { describe, expect, test } from "vitest";
import { OvsdbError } from "./ovsdb-error.ts";
import { readAnswer, Transaction } from "./transaction.ts";
import { parseUuid, type Uuid } from "./values.ts";
import { insertBridge, insertPort, removeBridge, removePorts } from "./vswitch.ts";

const uuid = (n: number): Uuid => {
  const parsed = parseUuid(`00000000-0000-4000-8000-${String(n).padStart(12, "0")}`);
  if (parsed === undefined) throw new Error("no UUID");
  return parsed;
};

const operations = (transaction: Transaction): readonly unknown[] => transaction.params("db").slice(1);

describe("operations as they are sent", () => {
  test("each kind of value, and rows that the transaction inserts itself", () => {
    const transaction = new Transaction("try");
    const port = transaction.insert("Port", { name: "p1", tag: 5, trunks: [1, 2], external_ids: { a: "b" } });
    transaction.insert("Bridge", {
      name: "br",
      ports: [port, uuid(1)],
      fail_mode: undefined,
      mcast_snooping_enable: true,
      other_config: new Map([["c", "d"]]),
      protocols: new Set(["OpenFlow15"]),
    });
    expect(transaction.params("Open_vSwitch")[0]).toBe("Open_vSwitch");
    expect(operations(transaction)).toEqual([
      {
        op: "insert",
        table: "Port",
        "uuid-name": "row0",
        row: { name: "p1", tag: 5, trunks: ["set", [1, 2]], external_ids: ["map", [["a", "b"]]] },
      },
      {
        op: "insert",
        table: "Bridge",
        "uuid-name": "row1",
        row: {
          name: "br",
          ports: [
            "set",
            [
              ["named-uuid", "row0"],
              ["uuid", uuid(1)],
            ],
          ],
          fail_mode: ["set", []],
          mcast_snooping_enable: true,
          other_config: ["map", [["c", "d"]]],
          protocols: ["set", ["OpenFlow15"]],
        },
      },
    ]);
  });

  test("conditions, mutations and the rest", () => {
    const transaction = new Transaction("try");
    transaction.select("Interface", [["ofport", "==", undefined]], ["name"]);
    transaction.update("Port", [["_uuid", "==", uuid(1)]], { tag: 7 });
    transaction.mutate(
      "Interface",
      [["external_ids", "includes", { a: "b" }]],
      [
        ["external_ids", "insert", new Map([["x", "y"]])],
        ["external_ids", "delete", ["c"]],
        ["external_ids", "delete", { d: "e" }],
        ["ingress_policing_rate", "*=", 2],
      ],
    );
    transaction.delete("Controller", [["target", "!=", "unix:x"]]);
    transaction.wait("Port", [["name", "==", "p"]], {
      columns: ["tag"],
      until: "!=",
      rows: [{ tag: 1 }],
      timeoutMs: 9,
    });
    transaction.comment("why");
    transaction.commit(true);
    transaction.abort();
    expect(operations(transaction)).toEqual([
      { op: "select", table: "Interface", where: [["ofport", "==", ["set", []]]], columns: ["_uuid", "name"] },
      { op: "update", table: "Port", where: [["_uuid", "==", ["uuid", uuid(1)]]], row: { tag: 7 } },
      {
        op: "mutate",
        table: "Interface",
        where: [["external_ids", "includes", ["map", [["a", "b"]]]]],
        mutations: [
          ["external_ids", "insert", ["map", [["x", "y"]]]],
          ["external_ids", "delete", ["set", ["c"]]],
          ["external_ids", "delete", ["map", [["d", "e"]]]],
          ["ingress_policing_rate", "*=", 2],
        ],
      },
      { op: "delete", table: "Controller", where: [["target", "!=", "unix:x"]] },
      {
        op: "wait",
        table: "Port",
        where: [["name", "==", "p"]],
        columns: ["tag"],
        until: "!=",
        rows: [{ tag: 1 }],
        timeout: 9,
      },
      { op: "comment", comment: "why" },
      { op: "commit", durable: true },
      { op: "abort" },
    ]);
  });

  test("bridges and ports, made and taken away", () => {
    const transaction = new Transaction("try");
    const { bridge } = insertBridge(transaction, { name: "br", bridge: { fail_mode: "secure" } });
    insertPort(transaction, "br", { name: "p", interface: { ofport_request: 4 }, port: { tag: 3 } });
    removePorts(transaction, "br", [uuid(1)]);
    removeBridge(transaction, uuid(2));
    expect(bridge.namedUuid).toBe("row2");
    expect(transaction.steps.map(({ words }) => words)).toEqual([
      "insert Interface",
      "insert Port",
      "insert Bridge",
      "mutate Open_vSwitch",
      "wait Bridge",
      "insert Interface",
      "insert Port",
      "mutate Bridge",
      "mutate Bridge",
      "mutate Open_vSwitch",
    ]);
    expect(operations(transaction).slice(4, 9)).toEqual([
      {
        op: "wait",
        table: "Bridge",
        where: [["name", "==", "br"]],
        columns: ["name"],
        until: "==",
        rows: [{ name: "br" }],
        timeout: 0,
      },
      { op: "insert", table: "Interface", "uuid-name": "row5", row: { name: "p", ofport_request: 4 } },
      {
        op: "insert",
        table: "Port",
        "uuid-name": "row6",
        row: { name: "p", tag: 3, interfaces: ["set", [["named-uuid", "row5"]]] },
      },
      {
        op: "mutate",
        table: "Bridge",
        where: [["name", "==", "br"]],
        mutations: [["ports", "insert", ["set", [["named-uuid", "row6"]]]]],
      },
      {
        op: "mutate",
        table: "Bridge",
        where: [["name", "==", "br"]],
        mutations: [["ports", "delete", ["set", [["uuid", uuid(1)]]]]],
      },
    ]);
  });
});

describe("what cannot be sent", () => {
  // As it may come from a program that the compiler does not see.
  type Loose = (table: string, row: unknown) => void;
  const bad: readonly [what: string, table: string, row: unknown, is: string][] = [
    ["a number for a text", "Port", { name: 5 }, '"Port.name" is 5, wanted a string'],
    ["nothing for a value", "Port", { name: undefined }, '"Port.name" is missing, wanted a string'],
    ["U+0000", "Port", { name: "a\0" }, '"Port.name" is "a\\u0000", wanted a string without the character U+0000'],
    ["half a number", "Port", { tag: 0.5 }, '"Port.tag" is 0.5, wanted an integer within 2^53'],
    ["too large a number", "Port", { tag: 2 ** 53 }, '"Port.tag" is 9007199254740992, wanted an integer within 2^53'],
    ["a text for a set", "Bridge", { ports: "p1" }, '"Bridge.ports" is "p1", wanted an array or a set'],
    ["a name for a UUID", "Bridge", { ports: ["p1"] }, '"Bridge.ports" is "p1", wanted a UUID or a row that this'],
    ["a text for a map", "Port", { external_ids: "a" }, '"Port.external_ids" is "a", wanted a map or an object'],
    ["a map of numbers", "Port", { external_ids: { a: 1 } }, '"Port.external_ids" is 1, wanted a string'],
    [
      "yes for true",
      "Bridge",
      { mcast_snooping_enable: "yes" },
      '"Bridge.mcast_snooping_enable" is "yes", wanted true or false',
    ],
    ["another column", "Port", { colour: "red" }, '"colour" is no column of Port'],
    ["a column of every object", "Port", { constructor: 1 }, '"constructor" is no column of Port'],
  ];
  test.each(bad)("%s", (_, table, row, is) => {
    const transaction = new Transaction("try");
    const insert = transaction.insert.bind(transaction) as unknown as Loose;
    expect(() => insert(table, row)).toThrow(`Cannot write a transaction: ${is}`);
    expect(transaction.steps).toEqual([]);
  });
});

test("what is wrong in a program of ours the compiler refuses", () => {
  const transaction = new Transaction("try");
  const wrong = (): void => {
    // @ts-expect-error There is no such table.
    transaction.insert("Prot", {});
    // @ts-expect-error There is no such column.
    transaction.insert("Port", { colour: "red" });
    // @ts-expect-error It holds numbers.
    transaction.update("Port", [], { tag: "5" });
    // @ts-expect-error It holds rows of another table, and names are none.
    transaction.update("Bridge", [], { ports: ["p1"] });
    // @ts-expect-error Texts have no order.
    transaction.delete("Port", [["name", "<", "p"]]);
    // @ts-expect-error It is no number.
    transaction.mutate("Port", [], [["name", "+=", 1]]);
    // @ts-expect-error It is one value.
    transaction.mutate("Interface", [], [["ofport", "insert", [1]]]);
    // @ts-expect-error There is no such column.
    transaction.select("Port", [], ["colour"]);
  };
  expect(wrong).toThrow();
});

describe("answers", () => {
  function written(): Transaction {
    const transaction = new Transaction('add port "p1"');
    transaction.insert("Port", { name: "p1" });
    transaction.mutate("Bridge", [], [["flood_vlans", "insert", [1]]]);
    transaction.comment("why");
    return transaction;
  }
  const good = [{ uuid: ["uuid", uuid(1)] }, { count: 3 }, {}];

  test("of each kind are read by what was asked", () => {
    const transaction = new Transaction("try");
    const inserted = transaction.insert("Port", { name: "p1" });
    const counted = transaction.delete("Port", []);
    const selected = transaction.select("Bridge", [], ["name", "fail_mode", "ports", "other_config"]);
    const outcome = readAnswer(transaction, [
      { uuid: ["uuid", uuid(1)] },
      { count: 3 },
      {
        rows: [
          {
            _uuid: ["uuid", uuid(2)],
            name: "br",
            fail_mode: "secure",
            ports: ["uuid", uuid(3)],
            other_config: ["map", []],
          },
          {
            _uuid: ["uuid", uuid(4)],
            name: "b2",
            fail_mode: ["set", []],
            ports: ["set", []],
            other_config: ["map", [["a", "b"]]],
          },
        ],
      },
    ]);
    expect(outcome.uuidOf(inserted)).toBe(uuid(1));
    expect(outcome.countOf(counted)).toBe(3);
    expect(outcome.rowsOf(selected)).toEqual([
      { _uuid: uuid(2), name: "br", fail_mode: "secure", ports: new Set([uuid(3)]), other_config: new Map() },
      { _uuid: uuid(4), name: "b2", fail_mode: undefined, ports: new Set(), other_config: new Map([["a", "b"]]) },
    ]);
  });

  const refused: readonly [what: string, result: unknown, code: string, operation: number, message: string][] = [
    [
      "the first operation",
      [{ error: "constraint violation", details: "no such value" }, null, null],
      "constraint violation",
      0,
      'operation 0 (insert Port) is answered "constraint violation" (no such value)',
    ],
    [
      "the second",
      [good[0], { error: "timed out" }, null],
      "timed out",
      1,
      'operation 1 (mutate Bridge) is answered "timed out"',
    ],
    [
      "the commit",
      [...good, { error: "referential integrity violation", details: "dangling" }],
      "referential integrity violation",
      3,
      'the commit is answered "referential integrity violation" (dangling)',
    ],
    [
      "in words of a later version",
      [{ error: "bad mood" }],
      "refused",
      0,
      'operation 0 (insert Port) is answered "bad mood"',
    ],
    ["in no words", [{ error: { a: 1 } }], "refused", 0, 'operation 0 (insert Port) is answered {"error":{"a":1}}'],
  ];
  test.each(refused)("that refuse %s", (_, result, code, operation, message) => {
    const refusal = errorOf(() => readAnswer(written(), result));
    expect(refusal).toMatchObject({ code, operation, mayHaveHappened: false });
    expect(refusal.message).toContain(`Cannot add port "p1": ${message}`);
  });

  const malformed: readonly [what: string, result: unknown, is: string][] = [
    ["null", null, "is null"],
    ["an object", { count: 1 }, 'is {"count":1}'],
    ["too few", good.slice(1), "has 2 results for 3 operations"],
    ["too many", [...good, {}], "has 4 results for 3 operations"],
    ["null in place of a result", [null, ...good.slice(1)], "to operation 0 (insert Port) cannot be read (it is null)"],
    ["no UUID", [{ uuid: "x" }, ...good.slice(1)], "to operation 0 (insert Port) cannot be read (an atom is"],
    ["half a count", [good[0], { count: 0.5 }, {}], "to operation 1 (mutate Bridge) cannot be read (an atom is 0.5"],
  ];
  test.each(malformed)("that are malformed: %s", (_, result, is) => {
    const error = errorOf(() => readAnswer(written(), result));
    // The server may well have carried it out.
    expect(error).toMatchObject({ code: "malformed", mayHaveHappened: true });
    expect(error.message).toContain(`Cannot add port "p1": the answer of the server ${is}`);
  });

  test.each([
    ["rows that are none", { rows: {} }],
    ["a row that is none", { rows: [5] }],
    ["a row without its UUID", { rows: [{ name: "x" }] }],
    ["a value of another type", { rows: [{ _uuid: ["uuid", uuid(1)], tag: "x" }] }],
    ["two values where one may be", { rows: [{ _uuid: ["uuid", uuid(1)], tag: ["set", [1, 2]] }] }],
  ])("that are malformed: %s", (_, result) => {
    const transaction = new Transaction("look");
    transaction.select("Port", [], ["name", "tag"]);
    expect(errorOf(() => readAnswer(transaction, [result])).code).toBe("malformed");
  });
});

function errorOf(call: () => unknown): OvsdbError {
  try {
    call();
  } catch (caught) {
    if (caught instanceof OvsdbError) return caught;
    throw caught;
  }
  throw new Error("It succeeded");
}
