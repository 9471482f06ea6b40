import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../../../conformance/plugin.ts";
import { tagged } from "../../../support/frames/frame.ts";
import { describeWith } from "../../../support/requires.ts";
import { Attack } from "../attack.ts";
import type { Rule } from "../rules.ts";
import { type OvsSite, startOvsSite } from "../sites/ovs-site.ts";
import { Forger } from "./forger.ts";
import { believed, brokenBy, found, withoutPacketRules } from "./found.ts";

/** Where IP goes on behind the first table, as docs/architecture.md has it: controls pass beside a hole. */
const goesOn = "resubmit(,30)";
const otherNode = "172.30.0.2";
const outside = "198.51.100.1";

describeWith("the red team sees holes in Open vSwitch", ["linux", "root", "openvswitch", "nft", "etcd"], () => {
  let site: OvsSite;
  let forger: Forger;

  beforeAll(async () => {
    compileExecutables();
    site = await startOvsSite({ nodes: ["a", "a"], ovs: { tenants: "multitenant" } });
    forger = new Forger(site.world);
    // They would close them.
    for (const node of site.lab.nodes) await node.agent.end("SIGTERM");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const ofctl = async (command: "add-flow" | "del-flows", flow: string, ...options: readonly string[]) => {
    const { vswitch } = site.lab.node(1);
    const target = `unix:${vswitch.management("br-int")}`;
    await vswitch.run("ovs-ofctl", "-O", "OpenFlow15", ...options, command, target, flow);
    await vswitch.forgetCachedFlows();
  };
  const portOf = async (pod: string): Promise<string> => {
    const { vswitch } = site.lab.node(1);
    return (await vswitch.vsctl("--bare", "--columns=name", "find", "Port", `external_ids:pod-name=${pod}`)).trim();
  };

  /** A flow by hand that takes whatever the attacker sends, while `work` runs. */
  async function withHole<T>(actions: string, work: () => Promise<T>): Promise<T> {
    const match = `table=0,priority=65535,in_port=${await portOf("mallory")}`;
    await ofctl("add-flow", `${match},actions=${actions},${goesOn}`);
    try {
      return await work();
    } finally {
      await ofctl("del-flows", match, "--strict");
    }
  }

  test("from the attacker to a pod beside it", async () => {
    const near = forger.pod("near");
    const { own, gateway } = forger;
    const ip = { to: near.v4 };
    const macs = { to: near.mac };
    const good = forger.udp({ ip, macs });
    const wrong: readonly (readonly [Rule, Uint8Array])[] = [
      ["untagged", tagged(forger.udp({ ip, macs }), 5)],
      ["ownMac", forger.udp({ ip, macs: { ...macs, from: near.mac } })],
      ["etherType", forger.otherType(0x88cc, near.mac)],
      ["malformed", forger.otherType(0x0800, near.mac)],
      ["ownAddress", forger.udp({ ip: { ...ip, from: gateway.v4 }, macs })],
      ["arpAboutItself", forger.arp(gateway.v4, near.v4)],
      ["neighbourAboutItself", forger.advertisement("fd10:0:0:1::1")],
      ["router", forger.router()],
      ["redirect", forger.redirect()],
      ["dhcp", forger.udp({ ip, macs, ports: { from: 67, to: 68 } })],
      ["loopback", forger.udp({ ip: { to: "127.0.0.1" }, macs })],
      ["answered", forger.arp(own.v4, near.v4)],
      ["flooded", forger.udp({ ip, macs: { to: "01:00:5e:00:00:01" } })],
      ["addressed", forger.udp({ ip: { to: "10.10.0.99" }, macs })],
      ["link", forger.udp({ ip: { to: outside }, macs })],
    ];
    expect(await found(site, good)).toEqual([]);
    await withHole(`output:${await portOf("near")}`, async () => {
      const broken = await brokenBy(site, [good, ...wrong.map(([, frame]) => frame)]);
      expect(broken).toEqual([[], ...wrong.map(([rule]) => [`${rule} at n1/near`])]);
    });
  });

  test("to a pod of another project", async () => {
    const { mac, v4 } = forger.pod("other");
    const frame = forger.udp({ ip: { to: v4 }, macs: { to: mac } });
    expect(await found(site, frame)).toEqual([]);
    const through = await withHole(`output:${await portOf("other")}`, () => found(site, frame));
    expect(through).toEqual(["projects at n1/other"]);
  });

  test("to the other node, through the tunnel", async () => {
    const far = forger.pod("far");
    const frame = forger.udp({ ip: { from: "10.10.9.9", to: far.v4 }, macs: {} });
    expect(await found(site, frame)).toEqual([]);
    const hole = `set_field:${otherNode}->tun_dst,output:pipette-tun0`;
    expect(await withHole(hole, () => found(site, frame))).toContain("ownAddress at n1 wire");
  });

  test("the masquerade is gone", async () => {
    const frame = forger.udp({ ip: { to: outside }, macs: {} });
    expect(await found(site, frame)).toEqual([]);
    const { namespace } = site.lab.node(1);
    const rules = await withoutPacketRules(namespace);
    expect(await found(site, forger.udp({ ip: { to: outside }, macs: {}, ports: { from: 41_000, to: 9 } }))).toEqual([
      "source at n1 wire",
    ]);
    await rules.putBack();
  });

  test("the guard of the tunnel's port is gone", async () => {
    const frame = forger.udp({ ip: { to: otherNode }, macs: {}, ports: { from: 40_000, to: 6081 } });
    expect(await found(site, frame)).toEqual([]);
    await ofctl("del-flows", "udp,tp_dst=6081");
    expect(await found(site, frame)).toContain("tunnel at n1 gateway");
  });

  // Late: what the node has believed of a router spoils its way out by IPv6.
  test("to the gateway, and to what its kernel believes", async () => {
    const { namespace } = site.lab.node(1);
    namespace.sysctl({ "ipv6/conf/pipette-gw0/accept_ra": 2 });
    const lies: readonly (readonly [Rule, Uint8Array])[] = [
      ["crowded", forger.udp({ ip: { from: "10.10.0.98", to: "10.10.0.99" }, macs: {} })],
      ["poisoned", forger.arp("10.10.0.77", forger.gateway.v4)],
      ["configured", forger.router()],
    ];
    await withoutPacketRules(namespace);
    await withHole("output:pipette-gw0", async () => {
      for (const [rule, frame] of lies) expect(await believed(site, frame)).toContain(`${rule} at n1`);
    });
  });

  test("a network that carries nothing is no proof", async () => {
    const near = [...site.lab.node(1).pods].find(({ name }) => name === "near");
    await near?.namespace.ip("link set eth0 down");
    await expect(Attack.begin(site, 1)).rejects.toThrow(/what must arrive did not, to near/);
  });
});
