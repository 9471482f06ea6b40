import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { symptoms } from "../../operator/why/symptoms.ts";
import { isTest, sources } from "./sources.ts";

/**
 * Each row of the table of symptoms in docs/troubleshooting.md has a test that makes it so with real agents and plugins,
 * and asks where the row is told. Those of `pipette why` are known by its code; the others are named here.
 */

interface Shown {
  readonly file: string;
  /** Of the test; a part that is there once. */
  readonly title: string;
}

/** What is told elsewhere, and by which test. */
const elsewhere: Readonly<Record<string, Shown>> = {
  "each call takes 10 ms and more, although the agent runs": {
    file: "test/install/in-front.test.ts",
    title: "the plan tells a node whose calls are slow",
  },
  // A pod that has its network is told of it, and no cause is named.
  "code 104 for a DEL": {
    file: "test/operator/why.test.ts",
    title: "a late DEL that met the sandbox again is told, and no cause",
  },
  "DEL succeeds, the interface stays": {
    file: "test/operator/why-agent.test.ts",
    title: "a DEL that succeeded without it: the interface stays",
  },
  "a pod on a kernel bridge sends and nothing arrives": {
    file: "test/operator/why-agent.test.ts",
    title: "a pod that sends with an address that is not its own",
  },
  '`peers: this node no longer reaches the pods of node "…"`': {
    file: "test/overlay/peer-probes.test.ts",
    title: "a cut in one direction is a loss for both",
  },
  "`peers: … has never reached …`": {
    file: "test/overlay/peer-probes.test.ts",
    title: "a node behind a router that knows no pods was never reached",
  },
  "connections to other nodes open and then hang": {
    file: "test/overlay/peer-probes.test.ts",
    title: "where only large packets vanish between the nodes",
  },
};

const tests = sources("*.test.ts").filter(({ path }) => isTest(path) && !path.startsWith("test/tidy/"));
/** What a system test says of a code: `code: "pool-exhausted"`. A unit test of the verdict is none. */
const shownBy = (code: string): readonly string[] =>
  tests
    .filter(({ path, text }) => path.startsWith("test/") && text.includes("why") && text.includes(`code: "${code}"`))
    .map(({ path }) => path);

const document = readFileSync("docs/troubleshooting.md", "utf8");
const rows = document
  .slice(document.indexOf("| what you see |"), document.indexOf("## pipette why"))
  .split("\n")
  .slice(2)
  .filter((line) => line.startsWith("| "))
  .map((line) => line.split("|")[1]?.trim() ?? "");

test("the table is there", () => expect(rows.length).toBeGreaterThan(20));

test.each(rows)("has a test: %s", (row) => {
  const named = elsewhere[row];
  if (named === undefined) {
    const code = symptoms.find((one) => one.row === row)?.code ?? "";
    expect(shownBy(code), code).not.toEqual([]);
    return;
  }
  const text = tests.find(({ path }) => path === named.file)?.text ?? "";
  expect(text.split(`test("${named.title}`), `"${named.title}" in ${named.file}`).toHaveLength(2);
});

test("nothing is named here that is no row", () => {
  expect(Object.keys(elsewhere).filter((row) => !rows.includes(row))).toEqual([]);
});
