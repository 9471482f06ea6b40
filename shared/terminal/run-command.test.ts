import { describe, expect, test } from "vitest";
import { runAt } from "../../test/fakes/terminal-run.ts";
import { CniCode, CniError } from "../errors.ts";
import { type AnyCommandLine, defineCommand, defineGroup } from "./command.ts";

let ran: AnyCommandLine | undefined;
const paint = defineCommand({
  action: "paint the wall",
  about: "Paints it.\nAll of it.",
  operands: [
    { name: "WALL", help: "which wall", mayBeEmpty: true },
    { name: "SIDE", help: "which side", of: ["in", "out"], optional: true },
  ],
  options: {
    colour: { value: "COLOUR", short: "c", help: "in this one", of: ["red", "blue", "green"], required: true },
    layer: {
      value: "NUMBER",
      help: "layers\nby number",
      repeats: true,
      rule: { wrong: (text) => (/^\d$/.test(text) ? undefined : `"${text}"`), wanted: "a digit" },
    },
    quickly: { help: "in a hurry", short: "q" },
    brush: { value: "BRUSH", help: "by this one" },
  },
  exits: { 1: "it rains" },
  run: async (line) => {
    ran = line as unknown as AnyCommandLine;
    if (line.options.brush === "broken") throw new CniError(CniCode.io, "Cannot paint\u0007", { details: "why\u0007" });
    return 4;
  },
});
const tools = defineGroup({
  about: "Tools.",
  entries: [
    { name: "paint", summary: "paints", load: async () => paint },
    { name: "print", summary: "prints", load: async () => paint },
    { name: "secret", summary: "hides", hidden: true, load: async () => paint },
  ],
});
const run = (...args: readonly string[]) => runAt("tool", tools, args);
const wall = ["paint", "--colour", "red", "north"];

describe("a command line", () => {
  const options = { colour: "red", layer: [], quickly: false, brush: undefined };
  test.each<readonly [readonly string[], object]>([
    [wall, { options, operands: ["north"] }],
    [
      ["paint", "north", "out", "--colour=blue"],
      { options: { ...options, colour: "blue" }, operands: ["north", "out"] },
    ],
    [["paint", "-c", "green", ""], { options: { ...options, colour: "green" }, operands: [""] }],
    [[...wall, "-q", "--quickly"], { options: { ...options, quickly: true } }],
    [[...wall, "--layer", "1", "--layer=2"], { options: { ...options, layer: ["1", "2"] } }],
    [[...wall, "--brush", "-x"], { options: { ...options, brush: "-x" } }],
    [[...wall, "--brush=--x"], { options: { ...options, brush: "--x" } }],
    [["secret", "--colour", "red", "--", "--north"], { operands: ["--north"] }],
  ])("%j is run", async (args, line) => {
    expect([(await run(...args)).status, ran]).toEqual([4, expect.objectContaining(line)]);
  });

  test.each<readonly [readonly string[], string]>([
    [["paint", "north"], '"--colour" is missing, wanted COLOUR'],
    [["paint", "--colour", "red"], "WALL is missing, wanted which wall"],
    [[...wall, "out", "more"], '"more" is one word too many, wanted WALL SIDE'],
    [[...wall, "up"], 'SIDE is "up", wanted in or out'],
    [[...wall, ""], "SIDE is empty"],
    [["paint", "--colour", "black", "north"], '"--colour" is "black", wanted red, blue or green'],
    [["paint", "--colour"], '"--colour" has no value, wanted COLOUR'],
    [["paint", "--colour=", "north"], '"--colour" has no value, wanted COLOUR'],
    [["paint", "--colour", "--quickly"], '"--colour" has no value, wanted COLOUR'],
    [[...wall, "--brush", "a", "--brush", "b"], '"--brush" is there twice'],
    [[...wall, "--layer", "x"], '"--layer" is "x", wanted a digit'],
    [[...wall, "--quickly=yes"], '"--quickly=yes" is no option of it'],
    [[...wall, "-b", "x"], '"-b" is no option of it, wanted --colour, --layer, --quickly, --brush, --help'],
    [[...wall, "--brus", "x"], '"--brus" is no option of it (did you mean "--brush"?), wanted --colour'],
  ])("%j is refused before anything runs", async (args, problem) => {
    ran = undefined;
    const { status, stdout, stderr } = await run(...args);
    expect([status, stdout, ran]).toEqual([2, "", undefined]);
    expect(stderr).toContain(`Cannot paint the wall: ${problem}`);
    expect(stderr).toContain('\n"tool paint --help" tells more\n');
  });

  test("that fails says why and what is known of it, harmless to a terminal", async () => {
    const { status, stderr } = await run(...wall, "--brush", "broken");
    expect(status).toBe(1);
    expect(stderr.split("\n")).toEqual([
      expect.stringMatching(/^Cannot paint[\x20-\x7e]*$/),
      expect.stringMatching(/^why[\x20-\x7e]*$/),
      "",
    ]);
  });
});

describe("the help", () => {
  test.each([
    ["paint", "--help"],
    ["paint", "-h"],
    [...wall, "--help"],
    ["paint", "--nothing", "--help"],
  ])("of a command tells all of it: %s %s %s", async (...args) => {
    expect(await run(...args)).toEqual({
      status: 0,
      stderr: "",
      stdout: `Usage: tool paint -c, --colour COLOUR [OPTIONS] WALL [SIDE]

Paints it.
All of it.

  WALL                 which wall
  SIDE                 which side
  -c, --colour COLOUR  in this one: red, blue or green
  --layer NUMBER       layers
                       by number; may be repeated
  -q, --quickly        in a hurry
  --brush BRUSH        by this one
  -h, --help           this text

Exit status:
  0  done
  1  it rains
  2  wrong arguments
`,
    });
  });

  const group = `Usage: tool COMMAND\n\nTools.\n\n  paint  paints\n  print  prints\n\n"tool COMMAND --help" tells more.\n`;
  test.each(["--help", "-h", "help"])("of many names those that are for people: %s", async (word) => {
    expect(await run(word)).toEqual({ status: 0, stdout: group, stderr: "" });
  });

  test("comes unasked where there is no command, and names where it is another", async () => {
    expect(await run()).toEqual({
      status: 2,
      stdout: "",
      stderr: `Cannot run "tool": the command is missing, wanted paint or print\n\n${group}`,
    });
    const { status, stderr } = await run("pain\u0007t");
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^Cannot run "tool": the command is "[\x20-\x7e]*\n/)]);
    expect((await run("pint")).stderr).toContain('wanted paint or print\n"tool --help" tells more\n');
  });
});
