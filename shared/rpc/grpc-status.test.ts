import { expect, test } from "vitest";
import { errorOfHttp, errorOfTrailers, percentDecode, resetOf } from "./grpc-status.ts";
import { GrpcCode, RpcError } from "./rpc-error.ts";

test.each([
  ["plain", "plain"],
  ["a%20b%25", "a b%"],
  ["%E7%B6%B2%c3%a9", "網é"],
  ["100%", "100%"],
  ["%4", "%4"],
  ["%zz%41", "%zzA"],
  ["%FF", "\ufffd"],
  // Bytes beyond ASCII that came as they are.
  ["\u00c3\u00a9", "é"],
])("the message %j reads %j", (encoded, text) => {
  expect(percentDecode(encoded)).toBe(text);
});

test.each([
  ["1", GrpcCode.cancelled],
  ["16", GrpcCode.unauthenticated],
  ["17", GrpcCode.unknown],
  ["-1", GrpcCode.unknown],
  ["999999999999", GrpcCode.unknown],
  ["", GrpcCode.unknown],
  ["0x5", GrpcCode.unknown],
  ["00", GrpcCode.unknown],
])("the status %j with a message is code %d", (status, code) => {
  const error = errorOfTrailers([
    ["grpc-status", status],
    ["grpc-message", "why%0A"],
  ]);
  expect(error).toBeInstanceOf(RpcError);
  expect(error).toMatchObject({ grpcCode: code, message: "why\\u000a", unreachable: false });
});

test("status 0 is no error, whatever the message", () => {
  expect(
    errorOfTrailers([
      ["grpc-status", "0"],
      ["grpc-message", "OK"],
    ]),
  ).toBeUndefined();
});

test("a status without a message is told by its number", () => {
  expect(errorOfTrailers([["grpc-status", "12"]])).toEqual({
    code: GrpcCode.unimplemented,
    is: 'the server answered with status "12", wanted 0',
  });
});

test.each([
  ["400", GrpcCode.internal],
  ["401", GrpcCode.unauthenticated],
  ["403", GrpcCode.permissionDenied],
  ["404", GrpcCode.unimplemented],
  ["429", GrpcCode.unavailable],
  ["503", GrpcCode.unavailable],
  ["500", GrpcCode.unknown],
  ["200", GrpcCode.unknown],
])("HTTP status %s without a gRPC status is code %d", (status, code) => {
  const problem = errorOfHttp([
    [":status", status],
    ["content-type", "text/html"],
  ]);
  expect(problem.code).toBe(code);
  expect(problem.is).toContain(`HTTP status ${status}, content type "text/html"`);
});

test.each([
  [7, "REFUSED_STREAM", GrpcCode.unavailable],
  [8, "CANCEL", GrpcCode.cancelled],
  [11, "ENHANCE_YOUR_CALM", GrpcCode.resourceExhausted],
  [12, "INADEQUATE_SECURITY", GrpcCode.permissionDenied],
  [1, "PROTOCOL_ERROR", GrpcCode.internal],
  [4_000_000_000, "error 4000000000", GrpcCode.unknown],
])("HTTP/2 error %d is %s, code %d", (code, name, grpcCode) => {
  expect(resetOf(code)).toEqual([name, grpcCode]);
});
