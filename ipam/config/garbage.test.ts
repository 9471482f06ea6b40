import { expect, test } from "vitest";
import { CniError } from "../../shared/errors.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { random } from "../../test/support/random.ts";
import { allocatorInMemory, ownerOf } from "../allocate/allocator-in-memory.ts";
import { parseAnyRanges, parseIpamConfig } from "./ipam-config.ts";

const keys = [
  ...["ipam", "runtimeConfig", "args", "cni", "ips", "ipRanges", "ranges", "subnet", "rangeStart", "rangeEnd"],
  ...["gateway", "exclude", "routes", "dst", "gw", "mtu", "scope", "dataDir", "resolvConf", "cooldownMs", "sticky"],
  ...["type", "IPAM", "Ranges", "__proto__", "constructor", "toString", "length", ""],
];
const leaves = [
  ...[
    null,
    true,
    false,
    0,
    -0,
    -1,
    1.5,
    1e308,
    2 ** 53,
    "",
    " ",
    "\0",
    "\ud800",
    "null",
    "__proto__",
    "[object Object]",
  ],
  ...[
    "10.0.0.0/29",
    "10.0.0.0/30",
    "10.0.0.3",
    "10.0.0.9/0",
    "fd00::/126",
    "fd00::2",
    "::ffff:10.0.0.2",
    "::/0",
    "0.0.0.0/0",
  ],
  ...["255.255.255.252/30", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffc/126", "255.255.255.255", "/absolute"],
  ...["1".repeat(5000), "9".repeat(40), "/".repeat(300), "10.0.0.0/29/29", "1.2.3.4.5", ":::", "10.0.0.٣"],
];

test.each([1, 2])("whatever a configuration holds, it is taken or refused with a CNI error: seed %i", (seed) => {
  const next = random(seed);
  const pick = <T>(from: readonly T[]): T => from[next(from.length)] as T;
  const value = (depth: number): unknown => {
    const kind = depth > 5 ? 9 : next(10);
    if (kind < 4) return Object.fromEntries(Array.from({ length: next(6) }, () => [pick(keys), value(depth + 1)]));
    if (kind < 7) return Array.from({ length: next(4) }, () => value(depth + 1));
    return pick(leaves);
  };
  const range = (): unknown => ({ subnet: pick(leaves), ...(next(3) === 0 ? { [pick(keys)]: value(4) } : {}) });
  let taken = 0;
  for (let round = 0; round < 1500; round++) {
    const ipam = { ranges: [[range()]], [pick(keys)]: value(2), [pick(keys)]: pick(leaves) };
    const conf = new Fields(JSON.parse(JSON.stringify({ ipam, [pick(keys)]: value(0) })));
    const args = next(3) === 0 ? `${pick(["IP=", "IgnoreUnknown=", "=", ""])}${pick(leaves)}` : "";
    const request = { conf, network: "net", version: pick(["0.2.0", "1.1.0"] as const), args };
    for (const parse of [parseIpamConfig, parseAnyRanges]) {
      try {
        const config = parse(request);
        taken++;
        // What was taken can be worked with, to the end of the pool.
        const { allocator } = allocatorInMemory();
        for (const id of ["a", "b", "c", "d"]) allocator.allocate(ownerOf(id), config);
        allocator.usage("net", config);
      } catch (caught) {
        expect(caught).toBeInstanceOf(CniError);
        expect([4, 7, 101]).toContain((caught as CniError).code);
        expect((caught as CniError).message.length).toBeLessThan(8000);
      }
    }
  }
  expect(taken).toBeGreaterThan(150);
});
