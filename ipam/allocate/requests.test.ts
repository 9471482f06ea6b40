import { describe, expect, test } from "vitest";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { type IpamConfig, parseIpamConfig } from "../config/ipam-config.ts";
import { assignRequests } from "./choose.ts";
import { hasSubnet, subnetOf } from "./owner-leases.ts";

const config = (requested: readonly string[] = []): IpamConfig => ({
  ...parseIpamConfig({
    conf: new Fields({
      ipam: {
        type: "pipette-ipam",
        ranges: [
          [{ subnet: "10.1.0.0/24" }, { subnet: "10.2.0.0/24" }],
          [{ subnet: "10.3.0.0/16" }],
          [{ subnet: "fd00::/64" }],
        ],
      },
    }),
    network: "pods",
    version: "1.1.0",
    args: "",
  }),
  requested: requested.map((text) => parseIp(text)!),
});

describe("requested addresses", () => {
  const assigned = (...requested: readonly string[]): readonly string[] => {
    const { rangeSets, ...rest } = config(requested);
    const found = assignRequests({ rangeSets, ...rest });
    return rangeSets.map((set) => {
      const ip = found.get(set);
      return ip === undefined ? "" : formatIp(ip);
    });
  };

  test.each([
    ["none", [], ["", "", ""]],
    ["one of a later set", ["fd00::9"], ["", "", "fd00::9"]],
    ["one of a set's second range", ["10.2.0.9"], ["10.2.0.9", "", ""]],
    ["one of each, in any order", ["fd00::9", "10.3.7.9", "10.1.0.9"], ["10.1.0.9", "10.3.7.9", "fd00::9"]],
  ])("go to the sets that they lie in: %s", (_name, requested, sets) => {
    expect(assigned(...requested)).toEqual(sets);
  });

  test.each([
    ["two of one set", ["10.1.0.9", "10.2.0.9"], '"10.2.0.9"'],
    ["one of no set", ["10.9.0.9", "10.1.0.9"], '"10.9.0.9"'],
  ])("are refused where a set is missing: %s", (_name, requested, says) => {
    expect(() => assigned(...requested)).toThrow(
      expect.objectContaining({
        code: 101,
        message: expect.stringContaining(`no range set left for the requested ${says}, wanted one address`),
      }),
    );
  });
});

test.each([
  ["10.1.0.7", 0, 24, "10.1.0.1"],
  ["10.2.0.7", 0, 24, "10.2.0.1"],
  ["10.3.9.7", 1, 16, "10.3.0.1"],
  ["fd00::7", 2, 64, "fd00::1"],
])("the ranges say of %s its set, its subnet and its gateway", (text, rangeSet, prefix, gateway) => {
  const found = subnetOf(config().rangeSets, parseIp(text)!);
  expect(found).toMatchObject({ rangeSet, address: { ip: parseIp(text), prefix } });
  expect(found?.gateway && formatIp(found.gateway)).toBe(gateway);
});

test("of an address in no range they say nothing, and a lease without a subnet has the address alone", () => {
  expect(subnetOf(config().rangeSets, parseIp("10.9.0.1")!)).toBeUndefined();
  const lease = (text: string, prefix: number) => ({ address: { ip: parseIp(text)!, prefix } }) as never;
  expect([hasSubnet(lease("10.1.0.7", 32)), hasSubnet(lease("10.1.0.7", 31))]).toEqual([false, true]);
  expect([hasSubnet(lease("fd00::7", 128)), hasSubnet(lease("fd00::7", 64))]).toEqual([false, true]);
});
