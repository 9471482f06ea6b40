import { describe, expect, test } from "vitest";
import { isReadable, mutantsOf, mutated } from "./mutations.ts";
import { ImportGraph, importsOf } from "./narrow-tests.ts";

/** Every form that this text gets. */
const formsOf = (text: string): readonly string[] =>
  mutantsOf("a.ts", text)
    .map((mutant) => mutated(text, mutant))
    .filter(isReadable);

describe("single mutants", () => {
  test.each([
    ["for (;;) if (a) break;", ["for (;;) ;", "for (;;) if (!(a)) break;"]],
    ["if (a) b = c;", ["if (!(a)) b = c;", "if (a) ;"]],
    ["x(a <= b);", [";", "x(a < b);"]],
    ["const x = a && b;", ["const x = (a);", "const x = (b);", "const x = a || b;"]],
    ["const x = a ?? b;", ["const x = a;"]],
    ["await a.b();", [";"]],
    ["try { a; } catch { throw b; }", ["try { a; } catch {}"]],
    ["try { a; } finally { using b = c; }", ["try { a; } finally {}"]],
    ['const x = t === "lost";', ['const x = t !== "lost";', 'const x = t === "mutant";']],
    ["const x = /^a$/i;", ["const x = /a$/i;", "const x = /^a/i;", "const x = /^a$/;"]],
    ["const x = [a, b];", ["const x = [b];", "const x = [a];"]],
    ["const x = { ...a, b };", ["const x = { ...{}, b };"]],
    ["const x = a.filter(b).some(c);", ["const x = a.some(c);", "const x = a.filter(b).every(c);"]],
    ["const x = 1n;", ["const x = 2n;"]],
  ])("%s", (text, wanted) => {
    expect(formsOf(text).toSorted()).toEqual(wanted.toSorted());
  });

  test("neither types, imports nor what is said to a log are asked for", () => {
    expect(formsOf('import { a } from "./b.ts";\nlet x: 1 | "a";\ncall.logger.error("no", { a: 1 });')).toEqual([]);
  });

  test("each says its line and the same sources give the same", () => {
    const text = "a();\nconst x = true;\n";
    expect(mutantsOf("a.ts", text).map(({ line, what }) => [line, what])).toEqual([
      [1, "statement left out"],
      [2, "constant changed"],
    ]);
  });
});

describe("the tests of a file", () => {
  test("are its own first, then those beside it, then those of what imports it", () => {
    const { first, others } = new ImportGraph().testsOf("ipam/allocate/sticky.ts");
    expect(first[0]).toBe("ipam/allocate/sticky.test.ts");
    expect(first).toContain("ipam/allocate/cooldown.test.ts");
    expect(others).toContain("ipam/allocator-model.test.ts");
    expect(others.filter((path) => first.includes(path))).toEqual([]);
  });

  test("types alone load nothing", () => {
    const text = 'import type { A } from "./a.ts";\nimport { b } from "../b.ts";\nawait import("./c.ts");';
    expect(importsOf("x/y.ts", text)).toEqual(["b.ts", "x/c.ts"]);
  });

  test("doubles of tests are no product", () => {
    const paths = new ImportGraph().filesOf("ipam/allocate/").map(({ path }) => path);
    expect(paths).toContain("ipam/allocate/pick.ts");
    expect(paths).not.toContain("test/fakes/allocator-in-memory.ts");
  });
});
