import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Allocator } from "../../ipam/mod.ts";
import { scratch } from "../conformance/plugin.ts";
import { compileUnsealed } from "../support/compile-unsealed.ts";
import { ipamCall, mustSucceed } from "./ipam-call.ts";

// A system may forbid a process to write memory and execute it; then Bun has no JIT, and no calls of C by way of it.
test("where there is no JIT the allocator works all the same, and knows its boot", async () => {
  using data = scratch();
  const conf = {
    cniVersion: "1.1.0",
    name: "net",
    ipam: { type: "pipette-ipam", dataDir: data.path, ranges: [[{ subnet: "10.78.0.0/24" }]] },
  };
  using program = scratch();
  const executable = await compileUnsealed(program.path, "pipette-ipam");
  const env = { BUN_JSC_useJIT: "0" };
  const { ips } = await mustSucceed(ipamCall("ADD", "c1", conf, { executable, env }));
  expect(ips).toMatchObject([{ address: "10.78.0.2/24" }]);
  using allocator = await Allocator.open(data.path);
  const bootId = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  expect(allocator.list("net")).toMatchObject([{ bootId }]);
  await mustSucceed(ipamCall("DEL", "c1", conf, { executable, env }));
  expect(allocator.list("net")).toMatchObject([{ state: "cooling" }]);
});
