import { expect, test } from "vitest";
import { formatCidr } from "../shared/net/ip.ts";
import { parseDelegateResult } from "./delegate.ts";

const addresses = (text: string) => parseDelegateResult(text, "x", "1.0.0").ips.map((ip) => formatCidr(ip.address));

test("reads a result by the version that it names, else by the configuration's", () => {
  expect(addresses('{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.2/24"},"ip6":{"ip":"fd00::2/64"}}')).toEqual([
    "10.1.0.2/24",
    "fd00::2/64",
  ]);
  expect(addresses('{"cniVersion":"0.3.1","ips":[{"version":"4","address":"10.1.0.2/24"}]}')).toEqual(["10.1.0.2/24"]);
  expect(addresses('{"cniVersion":"","ips":[{"address":"10.1.0.2/24"}]}')).toEqual(["10.1.0.2/24"]);
  expect(addresses('{"cniVersion":"7.0.0","ips":[{"address":"10.1.0.2/24"}]}')).toEqual(["10.1.0.2/24"]);
});

test("a result in the shape of another version than it names has no address, and says so", () => {
  expect(() => addresses('{"cniVersion":"1.0.0","ip4":{"ip":"10.1.0.2/24"}}')).toThrow(/"x": it holds no address/);
});

test("names the plugin and the field where it cannot be read", () => {
  expect(() => addresses('{"ips":[{"address":5}]}')).toThrow(/result of the IPAM plugin "x": "ips\[0\].address" is 5/);
});
