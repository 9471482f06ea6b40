import { expect, test } from "vitest";
import { CniError } from "../../shared/errors.ts";
import { damageError, isDamage, sqliteCode, storeError } from "./sqlite-errors.ts";

const sqlite = (errcode: number) => Object.assign(new Error("said"), { errcode });

test.each([
  [3, 101, "the system does not permit it (said), wanted a directory and files that this process may read and write"],
  [23, 101, "the system does not permit it"],
  [5, 11, "other processes held its lock for 5000 ms (said)"],
  // BUSY_RECOVERY and BUSY_SNAPSHOT
  [261, 11, "other processes held its lock"],
  [517, 11, "other processes held its lock"],
  [6, 11, "other processes held its lock"],
  [15, 11, "other processes held its lock"],
  [8, 101, "it is read-only (said), wanted a file and a file system that can be written"],
  [10, 101, "reading or writing it failed (said), wanted a working disk"],
  [11, 101, "its content is damaged (said), wanted an intact SQLite database"],
  [26, 101, "its content is damaged"],
  [13, 101, "the disk is full (said), wanted some free kilobytes"],
  [14, 101, "it cannot be opened (said), wanted a directory that exists"],
  [1, 100, "said"],
])("SQLite's code %i is %i for an operator: %s", (errcode, code, is) => {
  const cause = sqlite(errcode);
  const error = storeError(cause, "/d/leases.db") as CniError;
  expect(error).toBeInstanceOf(CniError);
  expect(error).toMatchObject({ code, cause });
  expect(error.message.startsWith(`Cannot use the lease database "/d/leases.db": ${is}`)).toBe(true);
  expect(sqliteCode(cause)).toBe(errcode & 0xff);
  const damaged = errcode === 11 || errcode === 26;
  expect([isDamage(cause), isDamage(error), isDamage(new Error("more", { cause: error }))]).toEqual([
    damaged,
    damaged,
    damaged,
  ]);
});

test("what is no error of SQLite stays what it is", () => {
  for (const other of [
    new Error("x"),
    "text",
    undefined,
    { errcode: 11 },
    Object.assign(new Error("x"), { errcode: "11" }),
  ]) {
    expect(storeError(other, "/d")).toBe(other);
    expect([sqliteCode(other), isDamage(other)]).toEqual([undefined, false]);
  }
  expect(isDamage(damageError("/d", "cut off"))).toBe(true);
  expect((damageError("/d", "cut off") as CniError).message).toContain("damaged (cut off)");
});
