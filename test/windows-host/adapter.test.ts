import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findAdapter, handBackAddress, nodeInterface, prepareHost } from "../../agent/datapath/hns/windows-host/mod.ts";
import { deleteHnsNetwork, makeHnsNetwork } from "./node-state.ts";
import { HostFixture, ip } from "./set-up-fixture.ts";

const card = { alias: "Ethernet0", index: 7, mac: "00-15-5D-01-02-03", prefixLength: 24 };

describe("findAdapter", () => {
  test("answers the card that holds the node's address", async () => {
    using host = new HostFixture();
    expect(await findAdapter(ip("192.168.1.5"), host.run)).toEqual(card);
    expect(host.node.processes).toBe(1);
  });

  test("refuses a virtual one, and an address that none holds", async () => {
    using host = new HostFixture();
    await expect(findAdapter(ip("192.168.1.6"), host.run)).rejects.toThrow(
      "Cannot find the node's adapter: no adapter holds 192.168.1.6, wanted one of 192.168.1.5, fe80::1, 127.0.0.1",
    );
    makeHnsNetwork(host.node.state, "other", true);
    await expect(findAdapter(ip("192.168.1.5"), host.run)).rejects.toThrow(
      'Cannot find the node\'s adapter: "vEthernet (Ethernet0)", which holds 192.168.1.5, is virtual, wanted a card that no switch has taken',
    );
  });

  test.each([
    ["Virtual", "perhaps", 'Virtual of Get-NetAdapter is "perhaps", wanted True or False'],
    ["InterfaceIndex", "", 'InterfaceIndex of Get-NetAdapter is "", wanted a whole number'],
  ])("a property that is not what it was thought to be is an error: %s", async (property, value, message) => {
    using host = new HostFixture();
    host.node.state.adapters[0]![property] = value;
    await expect(findAdapter(ip("192.168.1.5"), host.run)).rejects.toThrow(message);
  });
});

describe("nodeInterface", () => {
  test("answers the adapter with the node's address, of whatever kind, and an address that others reach", async () => {
    using host = new HostFixture();
    const mac = card.mac;
    expect(await nodeInterface(ip("192.168.1.5"), host.run)).toEqual({ mac });
    makeHnsNetwork(host.node.state, "other", true);
    const holder = host.node.state.addresses.find((entry) => entry["IPAddress"] === "192.168.1.5");
    for (const IPAddress of ["fe80::2", "fd01::5"])
      host.node.state.addresses.push({ ...holder, IPAddress, PrefixLength: 64 });
    expect(await nodeInterface(ip("192.168.1.5"), host.run)).toEqual({ mac, ipv6: ip("fd01::5") });
    await expect(nodeInterface(ip("192.168.1.6"), host.run)).rejects.toMatchObject({ code: 102 });
  });
});

describe("prepareHost", () => {
  test("puts on record what the network will take", async () => {
    using host = new HostFixture();
    host.node.state.interfaces[1]!["Dhcp"] = "Enabled";
    expect(await prepareHost(host.settings, host.run)).toEqual(card);
    const record: unknown = JSON.parse(readFileSync(join(host.dataDir, "windows-host/pipette.json"), "utf8"));
    expect(record).toEqual({
      version: 1,
      network: "pipette",
      entries: [],
      adapter: {
        ...{ name: "Ethernet0", index: 7, mac: "00155d010203", address: "192.168.1.5/24", dhcp: true },
        ...{ gateway: "192.168.1.1", dnsServers: ["192.168.1.2", "192.168.1.3"] },
        routes: [{ destination: "10.96.0.0/12", nextHop: "192.168.1.1", metric: 5 }],
      },
    });
  });

  test("the card must be the configured one", async () => {
    using host = new HostFixture();
    await expect(prepareHost({ ...host.settings, adapter: "Ethernet1" }, host.run)).rejects.toThrow(
      'Cannot find the node\'s adapter: 192.168.1.5 is on "Ethernet0", wanted it on "Ethernet1"',
    );
    expect(await prepareHost({ ...host.settings, adapter: "ETHERNET0" }, host.run)).toEqual(card);
  });

  test.each([true, false])("answers from the record once a network has the address (moved: %s)", async (moves) => {
    using host = new HostFixture();
    await prepareHost(host.settings, host.run);
    makeHnsNetwork(host.node.state, "pipette", moves);
    expect(await prepareHost(host.settings, host.run)).toEqual(card);
    // Without it, there is nothing to go by.
    await expect(findAdapter(ip("192.168.1.5"), host.run)).rejects.toThrow("Cannot find the node's adapter");
  });

  test("a switch that somebody else has made on another card is refused all the same", async () => {
    using host = new HostFixture();
    await prepareHost(host.settings, host.run);
    makeHnsNetwork(host.node.state, "other", true);
    host.node.state.adapters[1]!["MacAddress"] = "00-15-5D-00-00-09";
    await expect(prepareHost(host.settings, host.run)).rejects.toThrow("is virtual");
  });
});

describe("handBackAddress", () => {
  test("asks a DHCP server again where the address came from one", async () => {
    using host = new HostFixture();
    const dhcp = (): unknown => (host.node.state.interfaces[1]!["Dhcp"] = "Enabled");
    dhcp();
    await prepareHost(host.settings, host.run);
    makeHnsNetwork(host.node.state, "pipette", false);
    deleteHnsNetwork(host.node.state, "pipette", false);
    host.node.state.interfaces[1]!["Dhcp"] = "Disabled";
    host.node.state.addresses.push({ IPAddress: "169.254.3.4", InterfaceIndex: 7, PrefixLength: 16 });
    await expect(handBackAddress(host.dataDir, host.run)).rejects.toThrow("the card has no address after");
    expect(host.node.done).toEqual(["Set-NetIPInterface"]);
    expect(host.node.state.interfaces[1]?.["Dhcp"]).toBe("Enabled");
    host.node.afterwards = () =>
      host.node.state.addresses.push({ IPAddress: "192.168.1.77", InterfaceIndex: 7, PrefixLength: 24 });
    const { changes } = await handBackAddress(host.dataDir, host.run);
    expect(changes).toEqual([{ step: "hand back", what: '192.168.1.5/24 on "Ethernet0"', did: "made" }]);
    expect((await handBackAddress(host.dataDir, host.run)).changes).toEqual([]);
  });

  test("a card that is gone is an error, and stays on record", async () => {
    using host = new HostFixture();
    await prepareHost(host.settings, host.run);
    host.node.state.adapters.length = 0;
    host.node.state.addresses.length = 0;
    await expect(handBackAddress(host.dataDir, host.run)).rejects.toThrow(
      `Cannot give the node's card its address back: no card has 00155d010203, wanted "Ethernet0"`,
    );
    expect(readFileSync(join(host.dataDir, "windows-host/pipette.json"), "utf8")).toContain("00155d010203");
  });
});
