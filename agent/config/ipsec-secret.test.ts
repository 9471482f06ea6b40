import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { takePsk } from "./ipsec-secret.ts";

const socket = "/var/run/pipette/cni.sock";
const antrea = "/var/run/antrea/cni.sock";
const none = { file: undefined, socket };

test("the secret is taken out of the environment", () => {
  const env = { PIPETTE_IPSEC_PSK: "s3cret/of+all=nodes", OTHER: "x" };
  expect(takePsk(none, env)).toBe("s3cret/of+all=nodes");
  expect(env).toEqual({ OTHER: "x" });
});

test("Antrea's variable counts at Antrea's socket alone, and never stays", () => {
  const env = () => ({ ANTREA_IPSEC_PSK: "s3cret" });
  expect(takePsk({ file: undefined, socket: antrea }, env())).toBe("s3cret");
  const elsewhere = env();
  expect(() => takePsk(none, elsewhere)).toThrow('the variable "PIPETTE_IPSEC_PSK" is empty or missing');
  expect(elsewhere).toEqual({});
});

test.each([
  ["", "is empty or missing"],
  ["changeme", "which everybody knows"],
  ['a"b', "ipsec.secrets cannot"],
  ["two lines\n: PSK", "ipsec.secrets cannot"],
  ["x".repeat(257), "at most 256"],
  ["gr\u00fcn", "ipsec.secrets cannot"],
])("%j is refused, and not repeated", (secret, why) => {
  const act = (): string => takePsk(none, { PIPETTE_IPSEC_PSK: secret });
  expect(act).toThrow(why);
  if (secret.length > 10 || secret.includes('"')) expect(act).not.toThrow(secret);
});

test("a file is its owner's alone", () => {
  using scratch = scratchDir();
  const file = join(scratch.path, "psk");
  const read = (): string => takePsk({ file, socket }, {});
  expect(read).toThrow("cannot be read");
  writeFileSync(file, "of-a-file\n", { mode: 0o600 });
  expect(read()).toBe("of-a-file");
  expect(() => takePsk({ file, socket }, { PIPETTE_IPSEC_PSK: "x" })).toThrow("wanted one of them");
  chmodSync(file, 0o640);
  expect(read).toThrow("(mode 640), wanted mode 600");
  writeFileSync(file, "changeme\n");
  chmodSync(file, 0o600);
  expect(read).toThrow("which everybody knows");
});
