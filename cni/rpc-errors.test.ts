import { expect, test } from "vitest";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import { fromRpcError, whereToLook } from "./rpc-errors.ts";

test("every status has the code that the reference system's plugin gives it", () => {
  const again: GrpcCode[] = [GrpcCode.unavailable, GrpcCode.deadlineExceeded];
  for (const code of Object.values(GrpcCode)) {
    const wanted = again.includes(code) ? 11 : code === GrpcCode.unimplemented ? 202 : 201;
    expect([code, fromRpcError(new RpcError(code, "why"), "/a.sock")]).toMatchObject([
      code,
      { code: wanted, message: "why" },
    ]);
  }
});

test("a server that no call has reached is one to try again", () => {
  expect(fromRpcError(new RpcError(GrpcCode.unknown, "why", { unreachable: true }), "/a.sock").code).toBe(11);
});

test("where to look is a command only where there is one", () => {
  expect(whereToLook(() => true)).toMatch(/^"systemctl status pipette-agent", or the log of the agent's pod /);
  expect(whereToLook(() => false)).not.toContain("systemctl");
});
