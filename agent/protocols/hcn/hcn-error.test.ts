import { expect, test } from "vitest";
import { describeHresult, HcnError, isAttachedAlready, isDetachedAlready, isFailure } from "./hcn-error.ts";

test("a number with its name and meaning, or alone", () => {
  expect(describeHresult(-2143617022)).toBe("HCN_E_ENDPOINT_NOT_FOUND (0x803B0002: there is no such endpoint)");
  expect(describeHresult(0x803b9999)).toBe("0x803B9999");
  expect([0, 1, 0x7fffffff, 0x80004005, -2147467259].map(isFailure)).toEqual([false, false, false, true, true]);
});

test("an error says what was to be done, which function failed, how, and the service's words", () => {
  const failure = { action: 'delete endpoint "x"', call: "HcnDeleteEndpoint", hresult: -2147023728 };
  const error = new HcnError({ ...failure, serviceText: "Element not found. " });
  expect(error).toMatchObject({ hresult: 0x80070490, call: "HcnDeleteEndpoint", timedOut: false, isAbsence: true });
  expect(error.serviceText).toBe("Element not found. ");
  expect(error.message).toBe(
    'Cannot delete endpoint "x": HcnDeleteEndpoint answers ERROR_NOT_FOUND (0x80070490: there is no such object): Element not there.',
  );
});

test.each([
  [0x803b0001, "isAbsence"],
  [0x803b0002, "isAbsence"],
  [0x80070490, "isAbsence"],
  [0x803b0010, "isPresence"],
  [0x80071392, "isPresence"],
  [0x800706ba, "isServiceAway"],
  [0x803b0020, "isServiceAway"],
] as const)("%x is %s alone", (hresult, kind) => {
  const error = new HcnError({ action: "x", call: "HcnX", hresult });
  for (const each of ["isAbsence", "isPresence", "isServiceAway"] as const) expect(error[each]).toBe(each === kind);
});

test("an endpoint that is where it should be", () => {
  const codes = [0x803b0014, 0x803b002b, 0x803b0034, 0x803b0001, 0x803b0002, 0x80070490];
  expect(codes.map(isAttachedAlready)).toEqual([true, true, false, false, false, false]);
  expect(codes.map(isDetachedAlready)).toEqual([false, false, true, true, true, true]);
});
