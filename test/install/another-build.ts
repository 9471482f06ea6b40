import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { carriedMark } from "../../agent/commands/install/executable-marks.ts";
import { executables } from "../conformance/plugin.ts";
import { compiledBuildId } from "../support/forward-client.ts";

/**
 * The compiled executable as another build would be, small program included: with another build id in both, which is all
 * that they ask each other for. Quicker than compiling one.
 */
export function writeAnotherBuild(path: string): void {
  const whole = readFileSync(join(executables, "pipette"));
  const small = readFileSync(join(executables, "forward"));
  const id = Buffer.from(compiledBuildId());
  const other = Buffer.from(id.map((byte) => byte ^ 0xff));
  const carried = Buffer.from(carriedMark(small));
  // Compilers put it into instructions, eight bytes at a time.
  for (const half of [0, 8]) replaceAll(small, id.subarray(half, half + 8), other.subarray(half, half + 8));
  replaceAll(whole, carried, Buffer.from(carriedMark(small)));
  replaceAll(whole, Buffer.from(id.toString("hex")), Buffer.from(other.toString("hex")));
  writeFileSync(path, whole);
  chmodSync(path, 0o755);
}

function replaceAll(bytes: Buffer, from: Buffer, to: Buffer): void {
  let at = bytes.indexOf(from);
  if (at < 0) throw new Error("Cannot make another build: what should be another in it is not there");
  for (; at >= 0; at = bytes.indexOf(from, at + to.length)) to.copy(bytes, at);
}
