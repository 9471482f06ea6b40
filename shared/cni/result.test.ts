import { describe, expect, test } from "vitest";
import { parseCidr, parseIp } from "../net/ip.ts";
import { Fields } from "../schema/json-fields.ts";
import { encodeResult, parseResult } from "./result.ts";
import type { CniResult } from "./types.ts";
import { atLeast, type CniVersion, supportedVersions } from "./versions.ts";

const rich: CniResult = {
  interfaces: [
    { name: "br0", mac: "02:00:00:00:00:01" },
    { name: "eth0", mac: "02:00:00:00:00:02", mtu: 1450, sandbox: "/run/netns/a" },
  ],
  ips: [
    { address: parseCidr("10.1.0.5/24")!, gateway: parseIp("10.1.0.1")!, interface: 1 },
    { address: parseCidr("fd00::5/64")!, interface: 1 },
  ],
  routes: [
    {
      dst: parseCidr("0.0.0.0/0")!,
      gw: parseIp("10.1.0.1")!,
      mtu: 1400,
      advmss: 1360,
      priority: 5,
      table: 7,
      scope: 0,
    },
  ],
  dns: { nameservers: ["10.1.0.53"], search: ["a.test"] },
};

const encoded = (version: CniVersion, result = rich): Record<string, unknown> =>
  JSON.parse(encodeResult(result, version));

describe("encodeResult", () => {
  test.each(["0.1.0", "0.2.0"] as const)("%s: one address per family with its routes", (version) => {
    expect(encoded(version)).toEqual({
      cniVersion: version,
      ip4: { ip: "10.1.0.5/24", gateway: "10.1.0.1", routes: [{ dst: "0.0.0.0/0", gw: "10.1.0.1" }] },
      ip6: { ip: "fd00::5/64" },
      dns: { nameservers: ["10.1.0.53"], search: ["a.test"] },
    });
  });

  test.each(["0.3.0", "0.3.1", "0.4.0"] as const)("%s: ips carry their version, dns is always there", (version) => {
    const bare = encoded(version, { ...rich, dns: {} });
    expect(bare["dns"]).toEqual({});
    const empty = { nameservers: [], domain: "", search: [], options: [] };
    expect(encoded(version, { ...rich, dns: empty })["dns"]).toEqual({});
    const dns = { nameservers: ["10.1.0.53"], domain: "a.test", search: ["b.test"], options: ["ndots:5"] };
    expect(encoded(version, { ...rich, dns })["dns"]).toEqual(dns);
    expect(bare["ips"]).toEqual([
      { version: "4", interface: 1, address: "10.1.0.5/24", gateway: "10.1.0.1" },
      { version: "6", interface: 1, address: "fd00::5/64" },
    ]);
    expect(bare["interfaces"]).toEqual([
      { name: "br0", mac: "02:00:00:00:00:01" },
      { name: "eth0", mac: "02:00:00:00:00:02", sandbox: "/run/netns/a" },
    ]);
  });

  test("1.0.0: no version of an address, an empty dns is left out", () => {
    const result = encoded("1.0.0", { ...rich, dns: {} });
    expect(result["ips"]).toEqual([
      { interface: 1, address: "10.1.0.5/24", gateway: "10.1.0.1" },
      { interface: 1, address: "fd00::5/64" },
    ]);
    expect(result).not.toHaveProperty("dns");
  });

  test.each(["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] as const)("%s: a route keeps every field", (version) => {
    expect(encoded(version)["routes"]).toEqual([
      { dst: "0.0.0.0/0", gw: "10.1.0.1", mtu: 1400, advmss: 1360, priority: 5, table: 7, scope: 0 },
    ]);
  });

  test("1.1.0: mtu of interfaces and every field of a route", () => {
    const result = encoded("1.1.0");
    expect(result["interfaces"]).toContainEqual({
      name: "eth0",
      mac: "02:00:00:00:00:02",
      sandbox: "/run/netns/a",
      mtu: 1450,
    });
    expect(result["routes"]).toEqual([
      { dst: "0.0.0.0/0", gw: "10.1.0.1", mtu: 1400, advmss: 1360, priority: 5, table: 7, scope: 0 },
    ]);
  });
});

describe("parseResult", () => {
  test.each(supportedVersions.filter((version) => atLeast(version, "0.3.0")))(
    "%s: reads back what was written",
    (version) => {
      const text = encodeResult(rich, version);
      expect(encodeResult(parseResult(Fields.parse(text), version), version)).toBe(text);
    },
  );

  test.each(["0.1.0", "0.2.0"] as const)("%s: reads back what was written", (version) => {
    const text = encodeResult(rich, version);
    expect(encodeResult(parseResult(Fields.parse(text), version), version)).toBe(text);
  });

  test("goes by the configuration's version, whatever version the result names", () => {
    const fields = Fields.parse('{"cniVersion":"0.2.0","ips":[{"address":"10.0.0.2/24"}]}');
    expect(parseResult(fields, "1.0.0").ips).toHaveLength(1);
  });

  test.each([
    ['{"ips":[{"address":"10.0.0.2"}]}', '"ips[0].address" is "10.0.0.2"'],
    ['{"ips":[{"address":"10.0.0.2/24","gateway":"x"}]}', '"ips[0].gateway" is "x"'],
    ['{"routes":[{"gw":"10.0.0.1"}]}', '"routes[0].dst" is missing'],
    ['{"interfaces":[{}]}', '"interfaces[0].name" is missing'],
    ['{"ips":[null]}', '"ips[0]" is null'],
  ])("refuses %s", (text, part) => {
    expect(() => parseResult(Fields.parse(text), "1.0.0")).toThrow(part);
  });
});
