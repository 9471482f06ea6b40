import { describe, expect, test } from "vitest";
import { CniError } from "../../shared/errors.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { formatInterval } from "./intervals.ts";
import { type IpamConfig, parseAnyRanges, parseIpamConfig } from "./ipam-config.ts";

const request = (ipam: object, more: object = {}) => ({
  conf: new Fields({ ipam, ...more }),
  network: "net",
  version: "1.0.0" as const,
  args: "",
});
const parse = (ipam: object, more?: object): IpamConfig => parseIpamConfig(request(ipam, more));
const subnet = "10.1.2.0/24";

describe("exclude", () => {
  test.each([
    [{ subnet, exclude: [] }, []],
    [{ subnet, exclude: null }, []],
    [{ subnet, exclude: ["10.1.2.7", "10.1.2.6", "10.1.2.16/28"] }, ["10.1.2.6-10.1.2.7", "10.1.2.16-10.1.2.31"]],
    // Of the subnet, though it is given out in no case; or more than the subnet.
    [{ subnet, exclude: ["10.1.2.0"] }, ["10.1.2.0"]],
    [{ subnet, exclude: ["10.1.0.0/16"] }, ["10.1.0.0-10.1.255.255"]],
    [{ ranges: [[{ subnet: "fd00::/64" }]], exclude: ["fd00::/112"] }, ["fd00::-fd00::ffff"]],
    [
      {
        exclude: ["fd00::5"],
        ranges: [
          [
            { subnet, exclude: ["10.1.2.9"] },
            { subnet: "10.1.3.0/24", Exclude: ["10.1.3.9/32"] },
          ],
          [{ subnet: "fd00::/64" }],
        ],
      },
      ["10.1.2.9", "10.1.3.9", "fd00::5"],
    ],
    // Beside the one range at the top it is the section's.
    [{ subnet, ranges: [[{ subnet: "10.1.3.0/24" }]], exclude: ["10.1.3.5"] }, ["10.1.3.5"]],
  ])("of %j", (ipam, wanted) => {
    expect(parse(ipam).excluded.map(formatInterval)).toEqual(wanted);
  });

  test.each([
    [{ subnet, exclude: "10.1.2.3" }, '"ipam.exclude" is "10.1.2.3", wanted an array'],
    [{ subnet, exclude: [7] }, '"ipam.exclude[0]" is 7, wanted a string'],
    [{ subnet, exclude: ["10.1.2.4", null] }, '"ipam.exclude[1]" is null, wanted a string'],
    [
      { subnet, exclude: [""] },
      '"ipam.exclude[0]" is "", wanted an address or a block, such as "10.1.2.3" or "10.1.2.16/28"',
    ],
    [{ subnet, exclude: ["10.1.2.3-10.1.2.9"] }, "wanted an address or a block"],
    [{ subnet, exclude: ["10.1.2.03"] }, "wanted an address or a block"],
    [{ subnet, exclude: ["10.1.2.0/33"] }, "wanted an address or a block"],
    [
      { subnet, exclude: ["10.1.2.17/28"] },
      '"ipam.exclude[0]" is "10.1.2.17/28", wanted "10.1.2.16/28", without host bits',
    ],
    [
      { subnet, exclude: ["10.1.2.4", "10.1.3.0"] },
      '"ipam.exclude[1]" is "10.1.3.0", wanted something in "10.1.2.0/24"',
    ],
    [{ subnet, exclude: ["fd00::/64"] }, 'wanted something in "10.1.2.0/24"'],
    [
      { ranges: [[{ subnet, exclude: ["10.1.3.9"] }, { subnet: "10.1.3.0/24" }]] },
      '"ipam.ranges[0][0].exclude[0]" is "10.1.3.9", wanted something in "10.1.2.0/24"',
    ],
    [{ subnet, exclude: Array(1025).fill("10.1.2.4") }, '"ipam.exclude" is 1025 entries long, wanted 1024 at most'],
  ])("%j is refused", (ipam, wanted) => {
    const run = () => parse(ipam);
    expect(run).toThrow(CniError);
    expect(run).toThrow(wanted);
  });

  test("may be about ranges that the runtime brings, which STATUS does not get", () => {
    const ipam = { subnet, exclude: ["10.9.0.4"] };
    expect(() => parse(ipam)).toThrow('"10.9.0.4", wanted something in');
    const brought = { runtimeConfig: { ipRanges: [[{ subnet: "10.9.0.0/24", exclude: ["10.9.0.8"] }]] } };
    expect(parse(ipam, brought).excluded.map(formatInterval)).toEqual(["10.9.0.4", "10.9.0.8"]);
    expect(parseAnyRanges(request(ipam)).excluded).toHaveLength(1);
  });

  test("and gateways together are what no pod gets", () => {
    const config = parse({ exclude: ["10.1.2.2"], ranges: [[{ subnet }], [{ subnet: "fd00::/64" }]] });
    expect(config.gateways.map(formatInterval)).toEqual(["10.1.2.1", "fd00::1"]);
    expect(config.reserved.map(formatInterval)).toEqual(["10.1.2.1-10.1.2.2", "fd00::1"]);
  });
});

test.each([[true], [false]])("sticky may be %j, and is false where nothing is said", (sticky) => {
  expect([parse({ subnet, sticky }).sticky, parse({ subnet }).sticky]).toEqual([sticky, false]);
  expect(() => parse({ subnet, sticky: "true" })).toThrow('"ipam.sticky" is "true", wanted true or false');
});
