import { parse } from "@babel/parser";

/** One change of one file: `text[start, end)` becomes `replacement`. */
export interface Mutant {
  /** Path from the repository's root. */
  readonly path: string;
  /** From 1. */
  readonly line: number;
  readonly what: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

type Change = Omit<Mutant, "path" | "line">;
type Rule = (node: Node, text: (node: Node) => string, parent: Node | undefined) => readonly Change[];

/** Every change that the rules know for this file, in the order of the text; some cannot be read (`isReadable`). */
export function mutantsOf(path: string, text: string): readonly Mutant[] {
  const found: Change[] = [];
  const textOf = ({ start, end }: Node): string => text.slice(start, end);
  visit(read(text), undefined, (node, parent) => {
    for (const change of rules[node.type]?.(node, textOf, parent) ?? []) found.push(change);
  });
  return found
    .sort((a, b) => a.start - b.start)
    .map((change) => ({ path, line: text.slice(0, change.start).split("\n").length, ...change }));
}

/** The file's text with the change in it. */
export const mutated = (text: string, { start, end, replacement }: Change): string =>
  text.slice(0, start) + replacement + text.slice(end);

const read = (text: string): Node =>
  parse(text, { sourceType: "module", plugins: ["typescript", "explicitResourceManagement"] }).program as never;

/** Whether the changed text is still TypeScript. */
export function isReadable(text: string): boolean {
  try {
    read(text);
    return true;
  } catch {
    return false;
  }
}

/** Types have no behaviour; what is said to a log, and what only guards against ourselves, is not asked for. */
function isLeftOut(node: Node): boolean {
  if (node.type.startsWith("TS"))
    return !["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"].includes(node.type);
  if (node.type === "ImportDeclaration") return true;
  if (node.type !== "CallExpression") return false;
  const callee = nameOf(node["callee"] as Node);
  return callee === "assert" || /(^|\.)#?log(ger)?\.(debug|info|warn|error)$/.test(callee);
}

/** `a.b.c` of a chain of names, as far as it is one. */
function nameOf(node: Node): string {
  if (node.type === "MemberExpression") return `${nameOf(node["object"] as Node)}.${nameOf(node["property"] as Node)}`;
  return node.type === "Identifier"
    ? String(node["name"])
    : node.type === "PrivateName"
      ? nameOf(node["id"] as Node)
      : "";
}

function visit(node: Node, parent: Node | undefined, see: (node: Node, parent: Node | undefined) => void): void {
  if (isLeftOut(node)) return;
  see(node, parent);
  for (const value of Object.values(node))
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, node, see);
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string" && "start" in value;

const change = (what: string, { start, end }: Pick<Node, "start" | "end">, replacement: string): Change => ({
  what,
  start,
  end,
  replacement,
});

const boundaries: Readonly<Record<string, string>> = { "<": "<=", "<=": "<", ">": ">=", ">=": ">" };
const opposites: Readonly<Record<string, string>> = {
  "===": "!==",
  "!==": "===",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
};
const relatives: Readonly<Record<string, string>> = { some: "every", every: "some", min: "max", max: "min" };
/** Calls without which their object is something of the same kind. */
const shapers = ["filter", "sort", "reverse", "slice", "toSorted", "toReversed", "toLowerCase", "trimEnd", "trim"];
const exits = ["ReturnStatement", "ThrowStatement", "ContinueStatement", "BreakStatement"];

const isTestOf = (node: Node, parent: Node | undefined): boolean =>
  (parent?.type === "IfStatement" || parent?.type === "ConditionalExpression") && parent["test"] === node;

const rules: Readonly<Record<string, Rule>> = {
  IfStatement: (node, text) => {
    const test = node["test"] as Node;
    const then = node["consequent"] as Node;
    const last = then.type === "BlockStatement" ? (then["body"] as Node[]).at(-1) : then;
    const isCheck = isNull(node["alternate"]) && exits.includes(last?.type ?? "");
    return [
      change("condition turned", test, `!(${text(test)})`),
      ...(isCheck ? [change("check left out", node, ";")] : []),
    ];
  },
  ConditionalExpression: (node, text) => {
    const test = node["test"] as Node;
    const [yes, no] = [node["consequent"] as Node, node["alternate"] as Node];
    return [change("condition turned", test, `!(${text(test)})`), ...[yes, no].flatMap(constantOf)];
  },
  BinaryExpression: (node, text, parent) => {
    const [left, right] = [node["left"] as Node, node["right"] as Node];
    const operator = String(node["operator"]);
    const isText = [left, right].some(({ type }) => type === "StringLiteral" || type === "TemplateLiteral");
    const between = { start: left.end, end: right.start };
    const put = (by: string): string => text({ ...node, ...between }).replace(operator, by);
    const boundary = boundaries[operator];
    const opposite = opposites[operator];
    const isArithmetic = /^[+*/-]$/.test(operator);
    return [
      ...(boundary === undefined ? [] : [change("boundary", between, put(boundary))]),
      ...(opposite === undefined || (isArithmetic ? isText : isTestOf(node, parent))
        ? []
        : [change(isArithmetic ? "arithmetic" : "condition turned", between, put(opposite))]),
      ...(isArithmetic ? [] : [left, right].flatMap(constantOf)),
    ];
  },
  LogicalExpression: (node, text) => {
    const [left, right] = [node["left"] as Node, node["right"] as Node];
    const operator = String(node["operator"]);
    if (operator === "??") return [change("default left out", node, text(left))];
    const between = { start: left.end, end: right.start };
    const other = text({ ...node, ...between }).replace(operator, operator === "&&" ? "||" : "&&");
    return [
      change("&& ↔ ||", between, other),
      change("operand left out", node, `(${text(left)})`),
      change("operand left out", node, `(${text(right)})`),
    ];
  },
  UnaryExpression: (node, text, parent) =>
    node["operator"] === "!" && !isTestOf(node, parent)
      ? [change("condition turned", node, text(node["argument"] as Node))]
      : [],
  ExpressionStatement: (node) => {
    const expression = node["expression"] as Node;
    const call = expression.type === "AwaitExpression" ? (expression["argument"] as Node) : expression;
    const isAct = ["CallExpression", "AssignmentExpression", "UpdateExpression", "UnaryExpression"].includes(call.type);
    const isSuper = call.type === "CallExpression" && (call["callee"] as Node).type === "Super";
    return isAct && !isSuper && !isLeftOut(call) ? [change("statement left out", node, ";")] : [];
  },
  TryStatement: (node) => {
    const handler = node["handler"] as Node | null;
    const blocks = [handler?.["body"] as Node | undefined, node["finalizer"] as Node | null];
    return blocks.flatMap((block) =>
      isNull(block) || (block["body"] as Node[]).length === 0 ? [] : [change("undo left out", block, "{}")],
    );
  },
  SwitchCase: (node) => (isNull(node["test"]) ? [] : constantOf(node["test"] as Node)),
  CallExpression: (node, text) => {
    const callee = node["callee"] as Node;
    if (callee.type !== "MemberExpression") return [];
    const property = callee["property"] as Node;
    const name = String(property["name"]);
    const relative = relatives[name];
    return [
      ...(relative === undefined ? [] : [change("call changed", property, relative)]),
      ...(shapers.includes(name) ? [change("call left out", node, text(callee["object"] as Node))] : []),
    ];
  },
  ArrayExpression: (node, text) => {
    const elements = (node["elements"] as (Node | null)[]).filter((element) => element !== null);
    if (elements.length < 2) return [];
    return elements.map((left) => {
      const others = elements.filter((element) => element !== left);
      return change("element left out", node, `[${others.map(text).join(", ")}]`);
    });
  },
  SpreadElement: (node, _text, parent) =>
    parent?.type === "ObjectExpression" ? [change("fields left out", node, "...{}")] : [],
  NumericLiteral: (node) => [change("constant changed", node, String(Number(node["value"]) + 1))],
  BigIntLiteral: (node) => [change("constant changed", node, `${BigInt(String(node["value"])) + 1n}n`)],
  BooleanLiteral: (node) => [change("constant changed", node, String(node["value"] !== true))],
  RegExpLiteral: (node) => {
    const [pattern, flags] = [String(node["pattern"]), String(node["flags"])];
    const forms: readonly (readonly [string, string, string])[] = [
      ["anchor left out", pattern.replace(/^\^/, ""), flags],
      ["anchor left out", pattern.replace(/(?<!\\)\$$/, ""), flags],
      ["flag left out", pattern, flags.replace("i", "")],
    ];
    return forms.flatMap(([what, changed, kept]) =>
      changed !== "" && (changed !== pattern || kept !== flags) ? [change(what, node, `/${changed}/${kept}`)] : [],
    );
  },
};

/** A word that something is compared with or decided for; what is for people to read has blanks or more. */
const constantOf = (node: Node): readonly Change[] =>
  node.type === "StringLiteral" && /^[a-zA-Z-]{0,20}$/.test(String(node["value"]))
    ? [change("constant changed", node, '"mutant"')]
    : [];

const isNull = (value: unknown): value is null | undefined => value === null || value === undefined;
