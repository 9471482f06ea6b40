import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { maxStdinBytes, runPlugin } from "../shared/cni/dispatch.ts";
import { supportedVersions } from "../shared/cni/versions.ts";
import { limits } from "../shared/limits.ts";
import { ForwardLab } from "../test/fakes/forward/forward-lab.ts";
import { describeWith } from "../test/support/requires.ts";

/** What the whole program answers. */
async function versionByPlugin(stdin: string): Promise<{ status: number; stdout: string }> {
  let stdout = "";
  const status = await runPlugin({} as never, {
    env: { CNI_COMMAND: "VERSION" },
    readStdin: async () => new TextEncoder().encode(stdin),
    writeResult: async (text) => {
      stdout += `${text}\n`;
    },
    log: () => undefined,
  });
  return { status, stdout };
}

describeWith("VERSION by the small program", ["linux", "root", "gcc", "musl"], () => {
  const lab = new ForwardLab();
  beforeAll(() => lab.compile(true));
  afterEach(() => lab.clear());
  afterAll(() => lab.remove());

  test.each(["", ...supportedVersions.map((version) => `{"cniVersion":"${version}"}`)])(
    "of %j is what the whole program answers, and asks nobody",
    async (stdin) => {
      const seen = await lab.serve(() => undefined);
      for (const name of ["pipette", "pipette-ipam"]) {
        const { status, stdout, stderr } = await lab.call({ env: { CNI_COMMAND: "VERSION" }, stdin, name });
        expect({ status, stdout }).toEqual(await versionByPlugin(stdin));
        expect(stderr).toBe("");
      }
      expect(seen.requests).toHaveLength(0);
    },
  );

  test.each([
    ...[
      "{}",
      " ",
      "[",
      '{"cniVersion":"1.0"}',
      '{"cniVersion":"9.9.9"}',
      '{"cniVersion":"1.0.0"',
      '{ "cniVersion":"1.0.0"}',
    ],
    ...[
      '{"cniVersion":"1.0.0"}\n',
      '{"cniVersion":"1.0.0"}\0',
      '{"cniVersion":"1.0.0"}x',
      '{"cniVersion":1}',
      "x".repeat(70_000),
    ],
  ])("of any other text is the whole program's (%#)", async (stdin) => {
    const seen = await lab.serve(() => undefined);
    const { whole } = await lab.call({ env: { CNI_COMMAND: "VERSION" }, stdin });
    expect(whole?.arguments[2]).toBe("unasked");
    expect(whole?.stdinBytes).toBe(stdin.length);
    expect(seen.requests).toHaveLength(0);
  });
});

test("bounds that the small program shares with the others are theirs", () => {
  const header = readFileSync(join(import.meta.dirname, "forward.h"), "utf8");
  // Products and sums of numbers, as C and JavaScript read them alike.
  const bound = (name: string): unknown => {
    const terms = new RegExp(`^ {2}${name} = ([\\d *+]+),$`, "m").exec(header)?.[1] ?? "";
    return terms
      .split("+")
      .reduce((sum, term) => sum + term.split("*").reduce((product, n) => product * Number(n), 1), 0);
  };
  expect(bound("WHOLE_INPUT_BYTES")).toBe(maxStdinBytes + 1);
  expect(bound("ANSWER_BYTES")).toBe(limits.messageBytes);
  expect(bound("TAKEN_MS")).toBe(limits.longestTimeoutMs);
});
