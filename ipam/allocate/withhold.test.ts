import { expect, test } from "vitest";
import { type Ip, parseIp } from "../../shared/net/ip.ts";
import { allocatorInMemory, configOf, five, refusal } from "../../test/fakes/allocator-in-memory.ts";
import { withholding } from "./usage.ts";

const ips = (...texts: string[]): Ip[] => texts.map(parseIp).filter((ip) => ip !== undefined);

test("a withheld address is given to nobody, neither in turn nor because it cools longest", () => {
  const { add, del } = allocatorInMemory();
  const some = withholding(five, ips("10.0.0.3", "10.0.0.4"));
  expect([..."abc"].map((id) => add(id, some))).toEqual(["10.0.0.2", "10.0.0.5", "10.0.0.6"]);
  del("b");
  const more = withholding(five, ips("10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.9"));
  expect(refusal(() => add("d", more)).code).toBe(101);
  expect(add("d", some)).toBe("10.0.0.5");
});

test("who holds a lease on a withheld address keeps it", () => {
  const { add } = allocatorInMemory();
  expect([add("a"), add("a", withholding(five, ips("10.0.0.2")))]).toEqual(["10.0.0.2", "10.0.0.2"]);
});

test("a full range set says how many stand on interfaces without a lease", () => {
  const { add } = allocatorInMemory();
  for (const id of "abc") add(id);
  const error = refusal(() => add("d", withholding(five, ips("10.0.0.2", "10.0.0.5", "10.0.0.6"))));
  expect(error).toMatchObject({ code: 101, message: expect.stringContaining("has 0 of 5 addresses free") });
  expect(error.details).toContain("3 allocated, 0 releasing, 0 cooling; besides, 1 for gateways, 0 excluded");
  expect(error.details).toContain("0 excluded, 2 on interfaces without a lease");
});

test("one that is asked for is refused for now only: its interface may be about to go", () => {
  const { add } = allocatorInMemory();
  const asked = configOf({ subnet: "10.0.0.0/29" }, { runtimeConfig: { ips: ["10.0.0.4"] } });
  const error = refusal(() => add("a", withholding(asked, ips("10.0.0.4"))));
  expect(error).toMatchObject({ code: 11, message: expect.stringContaining('"10.0.0.4" stands on an interface') });
  expect(add("a", asked)).toBe("10.0.0.4");
});

test("where nothing is withheld the configuration is the same one", () => {
  expect(withholding(five, [])).toBe(five);
});
