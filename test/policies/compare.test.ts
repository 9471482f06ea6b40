import { describe, expect, test } from "vitest";
import { seed } from "../support/seed.ts";
import { compare } from "./compare.ts";

describe("network policies of random clusters", () => {
  test("are judged as by a second evaluator, and enforced so by nodes that have what was computed for them", () => {
    const { asked, allowed, isolated } = compare(seed, 20_000);
    // The questions are worth asking: both answers come, and policies decide.
    expect(asked).toBe(20_000);
    expect(allowed).toBeGreaterThan(asked / 5);
    expect(asked - allowed).toBeGreaterThan(asked / 5);
    expect(isolated).toBeGreaterThan(asked / 3);
  });
});
