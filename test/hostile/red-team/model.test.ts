import { describe, expect, test } from "vitest";
import { bytes, EtherType, ethernet, ipv4, ipv6, Protocol, tagged, udp } from "../../support/frames/frame.ts";
import { type Belief, wrongChanges } from "./beliefs.ts";
import { controlsOf } from "./controls.ts";
import { Draw } from "./grammar/draw.ts";
import { Grammar } from "./grammar/frames.ts";
import { vocabularyOf } from "./grammar/vocabulary.ts";
import { brokenByItself, brokenRule } from "./model.ts";
import { parseFrame } from "./parse.ts";
import { Forger } from "./planted/forger.ts";
import type { Rule } from "./rules.ts";
import { sampleWorld } from "./sample-world.ts";
import { hexOf, hexOfMac } from "./sites/facts.ts";
import { nameOf, type Place, type World } from "./world.ts";

const encap = sampleWorld();
const forger = new Forger(encap);
const { own, gateway } = forger;
const toNear = { ip: { to: forger.pod("near").v4 }, macs: { to: forger.pod("near").mac } };
const node = { mac: "02:00:ac:1e:00:01", v4: "172.30.0.1" };
const router = "02:00:ac:1e:ff:00";

const judged = (sent: Uint8Array, place: Place, arrived = sent, world: World = encap): Rule | undefined =>
  brokenRule(world, parseFrame(sent), place, parseFrame(arrived));

/** A datagram as the node sends it on, from an address to an address. */
function sentOn(from: string, to: string, port = 9): Uint8Array {
  const ends = { from, to };
  const datagram = udp(ends, { from: 40_000, to: port }, [1, 2, 3, 4]);
  return ethernet({ from: node.mac, to: router }, EtherType.ipv4, ipv4(ends, Protocol.udp, datagram));
}

/** In Geneve between the nodes. */
function inGeneve(inner: Uint8Array): Uint8Array {
  const ends = { from: node.v4, to: "172.30.0.2" };
  const datagram = udp(ends, { from: 50_000, to: 6081 }, bytes([0, 0, 0x65, 0x58, 0, 0, 0, 0], inner));
  return ethernet({ from: node.mac, to: "02:00:ac:1e:00:02" }, EtherType.ipv4, ipv4(ends, Protocol.udp, datagram));
}

test("what a pod may not send breaks one rule each, wherever it would arrive", () => {
  const good = forger.udp(toNear);
  const cases: readonly (readonly [Rule | undefined, Uint8Array])[] = [
    [undefined, good],
    ["untagged", tagged(good, 0)],
    ["untagged", tagged(tagged(good, 7), 7, EtherType.qinq)],
    ["ownMac", forger.udp({ ...toNear, macs: { from: gateway.mac } })],
    ["etherType", forger.otherType(0x88cc, gateway.mac)],
    ["etherType", forger.otherType(16, gateway.mac)],
    ["malformed", forger.otherType(EtherType.ipv4, gateway.mac)],
    ["ownAddress", forger.udp({ ip: { from: "10.10.1.3" }, macs: {} })],
    ["ownAddress", forger.udp({ ip: { from: "0.0.0.0" }, macs: {} })],
    [undefined, forger.arp(own.v4, gateway.v4)],
    ["arpAboutItself", forger.arp(gateway.v4, gateway.v4)],
    [undefined, forger.advertisement(own.linkLocal)],
    ["neighbourAboutItself", forger.advertisement("fd10:0:0:1::1")],
    ["router", forger.router()],
    ["redirect", forger.redirect()],
    ["dhcp", forger.udp({ ip: {}, macs: {}, ports: { from: 67, to: 68 } })],
    ["loopback", forger.udp({ ip: { to: "127.3.2.1" }, macs: {} })],
  ];
  for (const [rule, frame] of cases) expect(brokenByItself(encap, parseFrame(frame))).toBe(rule);
});

test("neighbour discovery is seen behind every header, and a router behind a mobility header too", () => {
  for (const header of [0, 43, 60, 135, 139, 140]) {
    const plain = forger.router();
    const message = plain.subarray(54);
    const ends = { from: own.linkLocal, to: "ff02::1" };
    const packet = ipv6(ends, header, bytes([Protocol.icmp6, 0, 0, 0, 0, 0, 0, 0], message), 255);
    const frame = ethernet({ from: own.mac, to: "33:33:00:00:00:01" }, EtherType.ipv6, packet);
    expect(brokenByItself(encap, parseFrame(frame))).toBe("router");
  }
});

describe("where it may arrive", () => {
  const near: Place = { role: "pod", node: "n1", pod: "near" };
  const wire: Place = { role: "wire", node: "n1" };
  const atGateway: Place = { role: "gateway", node: "n1" };

  test("at pods", () => {
    const good = forger.udp(toNear);
    expect(judged(good, near)).toBeUndefined();
    expect(judged(good, { ...near, pod: "other" })).toBe("projects");
    expect(judged(good, { ...near, pod: "other" }, good, { ...encap, projectsApart: false })).toBe("flooded");
    expect(judged(forger.arp(own.v4, "10.10.1.3"), near)).toBe("answered");
    const beyond = forger.udp({ ...toNear, ip: { to: "198.51.100.1" } });
    expect(judged(beyond, near)).toBe("link");
    const absent = forger.udp({ ...toNear, ip: { to: "10.10.1.99" } });
    expect(judged(absent, near)).toBe("addressed");
    const far = forger.pod("far");
    const sent = forger.udp({ ip: { to: far.v4 }, macs: {} });
    const arrived = forger.udp({ ip: { to: far.v4 }, macs: { from: gateway.mac, to: far.mac } });
    expect(judged(sent, { role: "pod", node: "n2", pod: "far" }, arrived)).toBeUndefined();
    expect(judged(forger.udp({ ip: { to: far.v4 }, macs: { to: node.mac } }), near, arrived)).toBe("flooded");
  });

  test("at the gateway", () => {
    expect(judged(forger.udp({ ip: {}, macs: {} }), atGateway)).toBeUndefined();
    expect(judged(forger.udp({ ip: { to: "10.10.1.99" }, macs: {} }), atGateway)).toBe("absent");
    expect(judged(forger.udp({ ip: {}, macs: { to: node.mac } }), atGateway)).toBe("link");
    const forged = forger.udp({ ip: { to: "172.30.0.2" }, macs: {}, ports: { from: 1, to: 6081 } });
    expect(judged(forged, atGateway)).toBe("tunnel");
    expect(judged(forged, atGateway, forged, { ...encap, tunnel: "vxlan" })).toBeUndefined();
  });

  test("on the nodes' network", () => {
    const out = forger.udp({ ip: { to: "198.51.100.1" }, macs: {} });
    expect(judged(out, wire, sentOn(node.v4, "198.51.100.1"))).toBeUndefined();
    expect(judged(out, wire, sentOn(own.v4, "198.51.100.1"))).toBe("source");
    expect(judged(out, wire, tagged(sentOn(node.v4, "198.51.100.1"), 5))).toBe("untagged");
    expect(judged(out, wire, out)).toBe("ownMac");
    const far = forger.udp({ ip: { to: "10.10.2.2" }, macs: {} });
    expect(judged(far, wire, inGeneve(far))).toBeUndefined();
    expect(judged(far, wire, sentOn(own.v4, "10.10.2.2"))).toBe("source");
    expect(
      judged(far, wire, sentOn(own.v4, "10.10.2.2"), { ...encap, mode: "noEncap", tunnel: "none" }),
    ).toBeUndefined();
    const forged = forger.udp({ ip: { to: "172.30.0.2" }, macs: {}, ports: { from: 1, to: 6081 } });
    expect(judged(forged, wire, sentOn(node.v4, "172.30.0.2", 6081))).toBe("tunnel");
    const served = forger.udp({ ip: { to: "10.97.0.9" }, macs: {} });
    expect(judged(served, wire, sentOn(node.v4, "172.30.0.2", 6081))).toBe("tunnel");
    expect(judged(out, { role: "local", node: "n2" }, sentOn(node.v4, "198.51.100.1"))).toBe("addressed");
  });
});

test.each([
  ["n1", "172.30.0.2", "02:00:ac:1e:00:02", undefined],
  ["n1", "172.30.0.2", router, "poisoned"],
  ["n1", "172.30.1.3", router, undefined],
  ["n1", "172.30.1.3", "02:00:ac:1e:00:02", "poisoned"],
  ["n3", "172.30.0.2", router, undefined],
  ["n3/far", "172.30.0.2", router, undefined],
  ["n3", "172.30.1.3", router, "poisoned"],
] as const)("%s may believe of %s that it is at %s: %s", (who, address, mac, wanted) => {
  const [first, second] = encap.nodes;
  if (second === undefined) throw new Error("there is no second node");
  const third = { ...second, name: "n3", addresses: [hexOf("172.30.1.3")], mac: hexOfMac("02:00:ac:1e:01:03") };
  const world = sampleWorld({ nodes: [first, second, { ...third, onSameLink: false }] });
  const text = `${address} is at ${mac}`;
  const belief: Belief = { ...{ who, kind: "learned", text }, address: hexOf(address), mac: hexOfMac(mac) };
  expect(wrongChanges(world, [], [belief]).map(({ rule }) => rule)).toEqual(wanted === undefined ? [] : [wanted]);
});

test("what must arrive is what may", () => {
  const modes = ["encap", "noEncap", "hybrid", "networkPolicyOnly"] as const;
  for (const mode of modes) {
    const world = sampleWorld({ mode });
    const grammar = new Grammar(new Draw(1), vocabularyOf(world), world, 1450);
    const controls = controlsOf(world);
    // To two pods, the node and the world, in both families.
    expect(controls.length).toBe(8);
    for (const { to, mac, place } of controls) {
      const { bytes: frame } = grammar.control(to, mac);
      expect(brokenByItself(world, parseFrame(frame)), `${mode}, ${nameOf(place)}`).toBeUndefined();
    }
  }
});
