import { parse } from "@babel/parser";
import { expect, test } from "vitest";
import { isTest, type Source, sources } from "./sources.ts";

// A test that asserts nothing passes whatever the product does.

/** Of the syntax tree that the parser makes, as far as it is looked at here. */
interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

interface Body {
  /** Names of functions and of whatever else is mentioned. */
  readonly mentioned: Set<string>;
  asserts: boolean;
}

interface Found {
  /** All functions of all files by name; several of one name count as one. */
  readonly functions: Map<string, Body>;
  readonly tests: { readonly place: string; readonly body: Body }[];
  /** Assertions whose outcome nobody waits for. */
  readonly adrift: string[];
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";

const uninteresting = new Set(["loc", "leadingComments", "trailingComments", "innerComments", "typeAnnotation"]);

function* children(node: Node): Iterable<Node> {
  for (const key in node) {
    const value = node[key];
    if (uninteresting.has(key) || typeof value !== "object") continue;
    if (Array.isArray(value)) yield* value.filter(isNode);
    else if (isNode(value)) yield value;
  }
}

const nameOf = (key: unknown): string => {
  if (!isNode(key)) return "";
  return String(key["name"] ?? key["value"] ?? (isNode(key["id"]) ? key["id"]["name"] : ""));
};

/** What a chain of members and calls begins with: `expect` of `expect(a).not.toBe(b)`. */
function rootOf(node: Node): string {
  const inner = [node["object"], node["callee"], node["tag"]].find(isNode);
  return inner === undefined ? nameOf(node) : rootOf(inner);
}

/** The name of the function that a statement, a method or a property declares. */
function declared(node: Node): string | undefined {
  const value = [node["init"], node["value"], node].find((one) => isNode(one) && isNode(one["body"]));
  if (!isNode(value) || !/Function|Method/.test(value.type)) return undefined;
  return nameOf(node["key"] ?? node["id"]) || undefined;
}

function search(all: readonly Source[]): Found {
  const found: Found = { functions: new Map(), tests: [], adrift: [] };
  for (const { path, text } of all) {
    const { program } = parse(text, { sourceType: "module", plugins: ["typescript", "explicitResourceManagement"] });
    const looked = { path, testBodies: new Set<Node>(), found };
    look(program as unknown as Node, { mentioned: new Set(), asserts: false }, looked);
  }
  return found;
}

interface Looked {
  readonly path: string;
  /** What has been seen to be the body of a test, and comes later. */
  readonly testBodies: Set<Node>;
  readonly found: Found;
}

/** Goes through the tree once; what a function inside of another one does counts for both. */
function look(node: Node, around: Body, looked: Looked): void {
  const { path, testBodies, found } = looked;
  const place = (): string => `${path}:${(node["loc"] as { start: { line: number } }).start.line}`;
  if (node.type === "Identifier") around.mentioned.add(nameOf(node));
  if (node.type === "CallExpression" && rootOf(node) === "expect") around.asserts = true;
  if (isAdrift(node)) found.adrift.push(place());
  const body = path.endsWith(".test.ts") ? bodyOfTest(node) : undefined;
  if (body !== undefined) testBodies.add(body);
  const name = declared(node);
  const isBody = testBodies.has(node);
  if (name === undefined && !isBody) {
    for (const child of children(node)) look(child, around, looked);
    return;
  }
  const own: Body = { mentioned: new Set(), asserts: false };
  if (node.type === "Identifier") own.mentioned.add(nameOf(node));
  for (const child of children(node)) look(child, own, looked);
  if (isBody) found.tests.push({ place: place(), body: own });
  if (name !== undefined) add(found.functions, name, own);
  for (const one of own.mentioned) around.mentioned.add(one);
  around.asserts ||= own.asserts;
}

function add(functions: Map<string, Body>, name: string, body: Body): void {
  const known = functions.get(name);
  for (const one of known?.mentioned ?? []) body.mentioned.add(one);
  functions.set(name, { ...body, asserts: body.asserts || known?.asserts === true });
}

/** Of `test(name, body)`, `test.each(…)(name, body)`, and so on. */
function bodyOfTest(node: Node): Node | undefined {
  if (node.type !== "CallExpression" || !["test", "it"].includes(rootOf(node))) return undefined;
  const rest = (node["arguments"] as Node[]).slice(1);
  return rest.find(({ type }) => type.includes("Function")) ?? rest.find(({ type }) => type === "Identifier");
}

/** `expect(a).rejects.toThrow()` or `expect.poll(…)` as a statement: it may fail when the test has long passed. */
function isAdrift(node: Node): boolean {
  if (node.type !== "ExpressionStatement" || !isNode(node["expression"])) return false;
  if (node["expression"].type !== "CallExpression" || rootOf(node["expression"]) !== "expect") return false;
  let waits = false;
  for (let at: unknown = node["expression"]; isNode(at); at = at["callee"] ?? at["object"])
    if (["rejects", "resolves", "poll"].includes(nameOf(at["property"]))) waits = true;
  return waits;
}

/** Tests that neither assert themselves nor by what they call, however deep. */
function assertingNothing({ functions, tests }: Found): string[] {
  const reaches = (body: Body, seen: Set<string>): boolean =>
    body.asserts ||
    [...body.mentioned].some((name) => {
      const next = functions.get(name);
      if (next === undefined || seen.has(name)) return false;
      seen.add(name);
      return reaches(next, seen);
    });
  return tests.filter(({ body }) => !reaches(body, new Set())).map(({ place }) => place);
}

const sample = (text: string): Found => search([{ path: "a.test.ts", text, lines: [] }]);

test("every test asserts something", () => {
  const found = search(sources("*.ts").filter(({ path }) => isTest(path)));
  expect(found.tests.length).toBeGreaterThan(1_000);
  expect(assertingNothing(found)).toEqual([]);
  expect(found.adrift).toEqual([]);
});

test("the rule sees tests that assert nothing, by themselves or by what they call", () => {
  const text = `
    const looks = () => expect(1).toBe(1);
    class A { checks() { looks(); } runs() { return 1; } }
    test("one", async () => { await run(); });
    test("two", () => new A().checks());
    test.each([1])("three", () => new A().runs());
    test("four", looks);`;
  expect(assertingNothing(sample(text))).toEqual(["a.test.ts:4", "a.test.ts:6"]);
});

test("the rule sees assertions that nobody waits for", () => {
  const text = `
    test("one", () => { expect(run()).rejects.toThrow("x"); });
    test("two", async () => { await expect(run()).resolves.toBe(1); });
    test("three", () => { expect.poll(() => 1).toBe(1); });
    test("four", () => expect(run()).rejects.toThrow());`;
  expect(sample(text).adrift).toEqual(["a.test.ts:2", "a.test.ts:4"]);
});
