import { statSync, utimesSync } from "node:fs";
import { expect, test } from "vitest";
import { scratchDir } from "../../../../../test/support/scratch-dir.ts";
import { privateKeyIn } from "../../../../cluster/own-key.ts";
import { wireguardKeyFile, wireguardUseFile } from "../../../../config/encryption-config.ts";
import { KeyLife } from "./key-life.ts";

const [secondMs, hourMs] = [1_000, 3_600_000];

/** A node's key that is a minute old, and a clock that can be set. */
function begun(rotateHours?: number) {
  const directory = scratchDir();
  privateKeyIn(directory.path);
  const made = Date.now() / 1_000 - 60;
  utimesSync(wireguardKeyFile(directory.path), made, made);
  const start = (): KeyLife => new KeyLife(directory.path, rotateHours);
  const [clock0, steady0] = [Date.now(), performance.now()];
  let life = start();
  return {
    directory,
    /** After so much time, with a clock that is ahead. */
    look: (afterMs: number, aheadMs = 0, handshakeMs = 0) =>
      life.look(clock0 + afterMs + aheadMs, steady0 + afterMs, handshakeMs),
    renewed: (afterMs: number, aheadMs = 0) => life.renewed(clock0 + afterMs + aheadMs, steady0 + afterMs),
    behind: () => life.behind?.getTime(),
    restart: () => {
      life = start();
    },
    clock0,
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  };
}

test("another key is due after its time, however the clock is set meanwhile, and at once where its file looks old", () => {
  using key = begun(24);
  expect(key.look(0)).toBeUndefined();
  expect(key.look(5 * secondMs, 365 * 24 * hourMs)).toBeUndefined();
  expect(key.look(24 * hourMs - 70 * secondMs, 365 * 24 * hourMs)).toBeUndefined();
  expect(key.look(24 * hourMs, 365 * 24 * hourMs)).toBe("age");
  key.renewed(24 * hourMs, 365 * 24 * hourMs);
  expect(key.look(25 * hourMs, 365 * 24 * hourMs)).toBeUndefined();
  utimesSync(wireguardKeyFile(key.directory.path), 0, 0);
  expect(key.look(25 * hourMs, 365 * 24 * hourMs)).toBe("age");
});

test("without a time no key is ever too old", () => {
  using key = begun();
  expect(key.look(100_000 * hourMs)).toBeUndefined();
});

test("a clock that was set back has another key due, also after a restart; a minute does not", () => {
  using key = begun();
  expect(key.look(0, hourMs)).toBeUndefined();
  expect(key.look(5 * secondMs, hourMs - 60 * secondMs)).toBeUndefined();
  expect(key.behind()).toBeUndefined();
  expect(key.look(10 * secondMs)).toBe("clock");
  expect(key.behind()).toBe(key.clock0 + hourMs);
  key.restart();
  expect(key.look(20 * secondMs)).toBe("clock");
  // Where it cannot have one, that ends with the time.
  expect(key.look(hourMs)).toBeUndefined();
  expect(key.look(hourMs + 5 * secondMs, -5 * 60 * secondMs)).toBe("clock");
  key.renewed(hourMs + 5 * secondMs, -5 * 60 * secondMs);
  expect(key.behind()).toBeUndefined();
  expect(key.look(hourMs + 10 * secondMs, -5 * 60 * secondMs)).toBeUndefined();
  expect(statSync(wireguardUseFile(key.directory.path)).mode & 0o777).toBe(0o600);
});

test("a handshake between two looks is enough", () => {
  using key = begun();
  expect(key.look(0)).toBeUndefined();
  expect(key.look(5 * secondMs, 0, key.clock0 + hourMs)).toBe("clock");
});
