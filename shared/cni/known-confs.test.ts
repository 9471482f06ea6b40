import { expect, test } from "vitest";
import { KnownConfs } from "./known-confs.ts";

const text = (name: string, padding = 0) => JSON.stringify({ name, padding: "x".repeat(padding) });

test("a text that came before gives the same object, with what was derived from it", () => {
  const confs = new KnownConfs();
  let reads = 0;
  const nameOf = (name: string) =>
    confs.parse(text(name)).derive((conf) => {
      reads++;
      return conf.string("name");
    });
  expect([nameOf("a"), reads]).toEqual(["a", 1]);
  expect(confs.parse(text("a"))).toBe(confs.parse(text("a")));
  expect(confs.parse(text("b")).string("name")).toBe("b");
});

test("what could not be derived is tried again", () => {
  const conf = new KnownConfs().parse(text("a"));
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
  for (let i = 0; i < 2; i++) expect(() => confs.parse("[]")).toThrow("it is an array, wanted one JSON object");
});

test("few texts are kept, and no long one", () => {
  const confs = new KnownConfs();
  const long = text("long", 8 * 1024);
  expect(confs.parse(long)).not.toBe(confs.parse(long));
  const first = confs.parse(text("first"));
  const others = Array.from({ length: 16 }, (_, i) => confs.parse(text(`${i}`)));
  expect(others.map((_, i) => confs.parse(text(`${i}`)))).toEqual(others);
  expect(confs.parse(text("15"))).toBe(others[15]);
  expect(confs.parse(text("first"))).not.toBe(first);
});
