import { expect, test } from "vitest";
import { KnownConfs } from "./known-confs.ts";

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (name: string, padding = 0) => encode(JSON.stringify({ name, padding: "x".repeat(padding) }));

test("a text that came before gives the same object, with what was derived from it", () => {
  const confs = new KnownConfs();
  let reads = 0;
  const nameOf = (name: string) =>
    confs.read(text(name)).conf.derive((conf) => {
      reads++;
      return conf.string("name");
    });
  expect([nameOf("a"), reads]).toEqual(["a", 1]);
  expect(confs.read(text("a")).conf).toBe(confs.read(text("a")).conf);
  expect(confs.read(text("b")).conf.string("name")).toBe("b");
});

test("what could not be derived is tried again", () => {
  const conf = new KnownConfs().read(text("a")).conf;
  let fails = 0;
  const failing = (): never => {
    fails++;
    throw new Error("wrong");
  };
  for (let i = 0; i < 2; i++) expect(() => conf.derive(failing)).toThrow("wrong");
  expect(fails).toBe(2);
});

test("a text that is none is refused each time", () => {
  const confs = new KnownConfs();
  for (let i = 0; i < 2; i++)
    expect(() => confs.read(encode("[]")).conf).toThrow("it is an array, wanted one JSON object");
});

test("few texts are kept, and no long one", () => {
  const confs = new KnownConfs();
  const long = text("long", 8 * 1024);
  expect(confs.read(long).conf).not.toBe(confs.read(long).conf);
  const first = confs.read(text("first")).conf;
  const others = Array.from({ length: 16 }, (_, i) => confs.read(text(`${i}`)).conf);
  expect(others.map((_, i) => confs.read(text(`${i}`)).conf)).toEqual(others);
  expect(confs.read(text("15")).conf).toBe(others[15]);
  expect(confs.read(text("first")).conf).not.toBe(first);
});
