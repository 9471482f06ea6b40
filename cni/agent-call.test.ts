import { expect, test } from "vitest";
import { limits } from "../shared/limits.ts";
import { traceOf } from "./agent-call.ts";

test("takes the trace variables that are set, under the names of their headers", () => {
  expect(traceOf({ TRACEPARENT: "00-a-b-01", TRACESTATE: "", BAGGAGE: "k=v", PATH: "/bin" })).toEqual({
    traceparent: "00-a-b-01",
    baggage: "k=v",
  });
});

test("leaves out one that is longer than any party must pass on", () => {
  expect(traceOf({ TRACESTATE: "x".repeat(limits.traceHeaderBytes + 1) })).toEqual({});
});
