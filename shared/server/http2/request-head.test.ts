import { describe, expect, test } from "vitest";
import { requestHeaders } from "../../../test/fakes/http2/scripted-client.ts";
import { limits } from "../../limits.ts";
import { percentDecode } from "../../rpc/grpc-status.ts";
import { percentEncode } from "./answer-headers.ts";
import { readHead } from "./request-head.ts";

describe("grpc-timeout", () => {
  const timeoutOf = (text: string): number | undefined | "refused" => {
    const outcome = readHead(requestHeaders({ "grpc-timeout": text }));
    return outcome.t === "call" ? outcome.head.timeoutMs : "refused";
  };
  test.each([
    ["1H", 3_600_000],
    ["2M", 120_000],
    ["3S", 3000],
    ["4m", 4],
    ["5000000u", 5000],
    ["1n", 1],
    ["0m", 0],
    // Longer than any timer.
    ["99999999H", 2_147_483_647],
  ])("%s is %d ms", (text, timeoutMs) => {
    expect(timeoutOf(text)).toBe(timeoutMs);
  });

  test.each(["", "S", "1", "1s", "-1S", "1.5S", "123456789S", "1 S", "0x1S"])("%j is refused", (text) => {
    expect(timeoutOf(text)).toBe("refused");
  });
});

describe("grpc-message", () => {
  test("reads as it was written", () => {
    for (const text of ["plain, ~ and !", "100% of it", "網路 Straße 😀 /a\tb\\\n", "%41"])
      expect(percentDecode(percentEncode(text))).toBe(text);
    expect(percentEncode("a%ä")).toBe("a%25%C3%A4");
  });

  test("is cut between two characters where it is too long", () => {
    const encoded = percentEncode(`x${"網".repeat(limits.statusMessageBytes)}`);
    expect(encoded.length).toBeLessThanOrEqual(limits.statusMessageBytes);
    expect(percentDecode(encoded)).toMatch(/^x網+$/);
  });
});
