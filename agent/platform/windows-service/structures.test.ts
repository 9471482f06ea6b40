import { expect, test } from "vitest";
import { commandLine, encodeServiceStatus, serviceState } from "./structures.ts";

/** Words as SERVICE_STATUS has them: type, state, accepted, exit code, own exit code, check point, wait hint. */
test.each([
  [{ state: serviceState.startPending, checkPoint: 3, waitHintMs: 15_000 }, [0x10, 2, 0, 0, 0, 3, 15_000]],
  [{ state: serviceState.running }, [0x10, 4, 5, 0, 0, 0, 0]],
  [{ state: serviceState.stopPending, checkPoint: 1, waitHintMs: 15_000 }, [0x10, 3, 0, 0, 0, 1, 15_000]],
  [{ state: serviceState.stopped, exitStatus: 0 }, [0x10, 1, 0, 0, 0, 0, 0]],
  // ERROR_SERVICE_SPECIFIC_ERROR, without which a status of its own says nothing.
  [{ state: serviceState.stopped, exitStatus: 70 }, [0x10, 1, 0, 1066, 70, 0, 0]],
])("%j", (status, words) => {
  expect([...encodeServiceStatus(status)]).toEqual(words);
});

test.each([
  ["C:\\a\\p.exe", [], '"C:\\a\\p.exe"'],
  ["C:\\Program Files\\p.exe", ["agent", "--service"], '"C:\\Program Files\\p.exe" agent --service'],
  ["p", ["C:\\a b\\"], '"p" "C:\\a b\\\\"'],
  ["p", ['say "hi"', ""], '"p" "say \\"hi\\"" ""'],
  ["p", ['a\\\\"b c'], '"p" "a\\\\\\\\\\"b c"'],
])("%s %j", (program, args, wanted) => {
  expect(commandLine(program, args)).toBe(wanted);
});
