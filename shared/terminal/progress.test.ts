import { expect, test, vi } from "vitest";
import { Progress } from "./progress.ts";
import type { TerminalIo } from "./terminal-io.ts";

/** What is said on stderr of a work that calls after each of these times. */
function said(stderrIsTerminal: boolean, wanted: boolean, ...afterMs: readonly number[]): string {
  let text = "";
  const io: TerminalIo = {
    stdout: () => undefined,
    stderr: (more) => {
      text += more;
    },
    stdin: async () => new Uint8Array(),
    env: {},
    stderrIsTerminal,
  };
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    using progress = new Progress(io, wanted);
    for (const [i, ms] of afterMs.entries()) {
      vi.advanceTimersByTime(ms);
      progress.at("leases kept", i + 1, 4);
    }
  } finally {
    vi.useRealTimers();
  }
  return text;
}

test("on a terminal one line is written over, and goes at the end", () => {
  expect(said(true, false, 1, 150, 1, 150)).toBe(
    "\r\u001b[K2 of 4 (50 %) leases kept\r\u001b[K4 of 4 (100 %) leases kept\r\u001b[K",
  );
});

test("short work says nothing anywhere", () => {
  expect(said(true, true, 1, 1)).toBe("");
});

test("elsewhere nothing, unless it is asked for", () => {
  expect(said(false, false, 5000, 5000)).toBe("");
  expect(said(false, true, 2500, 1, 2500)).toBe("1 of 4 (25 %) leases kept\n3 of 4 (75 %) leases kept\n");
});
