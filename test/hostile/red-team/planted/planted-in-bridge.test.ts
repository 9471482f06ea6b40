import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../../../conformance/plugin.ts";
import { tagged } from "../../../support/frames/frame.ts";
import { describeWith } from "../../../support/requires.ts";
import type { Rule } from "../rules.ts";
import { type BridgeSite, startBridgeSite } from "../sites/bridge-site.ts";
import { Forger } from "./forger.ts";
import { believed, brokenBy, forgetRouters, found, waysOut } from "./found.ts";

const bridge = "pipette0";

describeWith("the red team sees holes in a kernel bridge", ["linux", "root", "nft"], () => {
  let site: BridgeSite;
  let forger: Forger;

  beforeAll(async () => {
    compileExecutables();
    site = await startBridgeSite("both");
    forger = new Forger(site.world);
    // It would close them.
    await site.agent.end("SIGTERM");
    await openBridge();
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  /** As a bridge is that nobody guards. */
  async function openBridge(): Promise<void> {
    const { node } = site;
    for (const table of (await node.run("nft list tables")).split("\n"))
      if (/^table (bridge|netdev) |pipette/.test(table)) await node.run(`nft delete ${table}`);
    const links: { ifname: string }[] = JSON.parse(await node.run(`ip -j link show master ${bridge}`));
    for (const { ifname } of links)
      await node.run(
        `bridge link set dev ${ifname} learning on flood on mcast_flood on bcast_flood on locked off guard off`,
      );
  }

  test("between its ports", async () => {
    const near = forger.pod("near");
    const ip = { to: near.v4 };
    const macs = { to: near.mac };
    expect(await found(site, forger.udp({ ip, macs }))).toEqual([]);
    const wrong: readonly (readonly [Rule, Uint8Array])[] = [
      ["untagged", tagged(forger.udp({ ip, macs }), 5)],
      ["ownMac", forger.udp({ ip, macs: { ...macs, from: "02:00:00:00:00:99" } })],
      ["etherType", forger.otherType(0x88b5, near.mac)],
      ["ownAddress", forger.udp({ ip: { ...ip, from: "10.20.1.99" }, macs })],
      ["arpAboutItself", forger.arp("10.20.1.99", near.v4)],
      ["router", forger.router()],
      ["redirect", forger.redirect()],
      ["dhcp", forger.udp({ ip, macs, ports: { from: 67, to: 68 } })],
      ["flooded", forger.udp({ ip, macs: { to: "02:00:00:00:00:98" } })],
    ];
    const broken = await brokenBy(
      site,
      wrong.map(([, frame]) => frame),
    );
    for (const [i, [rule]] of wrong.entries()) expect(broken[i]).toContain(`${rule} at n1/near`);
  });

  test("in what node and bridge believe", async () => {
    site.node.sysctl({ [`ipv6/conf/${bridge}/accept_ra`]: 2, [`ipv6/conf/${bridge}/forwarding`]: 1 });
    const ways = await waysOut(site.node);
    const lies: readonly (readonly [Rule, Uint8Array])[] = [
      ["learned", forger.udp({ ip: {}, macs: { from: "02:00:00:00:00:97" } })],
      ["crowded", forger.udp({ ip: { to: "10.20.1.97" }, macs: {} })],
      ["poisoned", forger.arp("10.20.1.96", forger.gateway.v4)],
      ["loopback", forger.udp({ ip: { to: "127.0.0.1" }, macs: {} })],
      ["configured", forger.router()],
    ];
    for (const [rule, frame] of lies) expect(await believed(site, frame)).toContain(`${rule} at n1`);
    await forgetRouters(site.node, ways);
  });

  test("in what leaves the node", async () => {
    const frame = forger.udp({ ip: { to: "198.51.100.1" }, macs: {}, ports: { from: 42_000, to: 9 } });
    expect(await found(site, frame)).toEqual(["source at n1 wire"]);
  });
});
