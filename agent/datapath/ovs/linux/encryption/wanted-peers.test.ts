import { expect, test } from "vitest";
import { formatIp, parseCidr, parseIp } from "../../../../../shared/net/ip.ts";
import type { ClusterNode } from "../../../../cluster/node-registry.ts";
import { peerChanges, silentPeers, wantedPeers } from "./wanted-peers.ts";

const key = (byte: number): string => Buffer.alloc(32, byte).toString("base64");
const node = (number: number, changes: Partial<ClusterNode> = {}): ClusterNode => ({
  name: `n${number}`,
  uid: "",
  addresses: [parseIp(`fd30::${number}`)!, parseIp(`172.30.0.${number}`)!],
  subnets: [parseCidr(`10.10.${number}.0/24`)!],
  encryption: { type: "wireguard", key: key(number) },
  ...changes,
});
const both = new Set([4, 6]);
const port = 51_820;

test("IPv4 is preferred where both nodes have it", () => {
  expect(wantedPeers([node(2)], both).peers.map(({ ip }) => formatIp(ip))).toEqual(["172.30.0.2"]);
  expect(wantedPeers([node(2)], new Set([6])).peers.map(({ ip }) => formatIp(ip))).toEqual(["fd30::2"]);
});

test("who does not encrypt likewise, or has another's key, is named and gets nothing", () => {
  const { encryption: _, ...plain } = node(3);
  const nodes = [node(2), plain, node(5, { encryption: node(2).encryption! })];
  const { peers, strangers } = wantedPeers(nodes, both);
  expect(peers.map((peer) => peer.node)).toEqual(["n2"]);
  expect(strangers).toEqual([
    expect.stringContaining('node "n3": it does not encrypt'),
    expect.stringContaining('node "n5": its public key is that of node "n2" too'),
  ]);
});

test("who had a key keeps it, also where a node that comes earlier says that it were its own", () => {
  const former = new Map([[key(5), "n5"]]);
  const thief = node(2, { encryption: node(5).encryption! });
  const { peers, strangers } = wantedPeers([thief, node(5)], both, former);
  expect(peers.map((peer) => peer.node)).toEqual(["n5"]);
  expect(strangers).toEqual([expect.stringContaining('node "n2": its public key is that of node "n5" too')]);
  // Once its owner has another one, nobody keeps it from others.
  const { peers: later } = wantedPeers([thief, node(5, { encryption: node(6).encryption! })], both, former);
  expect(later.map((peer) => peer.node)).toEqual(["n2", "n5"]);
});

const { peers } = wantedPeers([node(2)], both);
const standing = { publicKey: key(2), allowed: peers[0]!.allowed, handshakeAt: 0, receivedBytes: 0, sentBytes: 0 };
const at = (ip: string) => ({ ip: parseIp(ip)!, port });
const told = new Map([[key(2), "172.30.0.2"]]);

test("a new peer is greeted at once, behind those that go", () => {
  const gone = { ...standing, publicKey: key(9) };
  expect(peerChanges({ peers: [gone] }, peers, port, new Map())).toEqual([
    { publicKey: key(9), remove: true },
    { publicKey: key(2), endpoint: at("172.30.0.2"), allowed: peers[0]!.allowed, keepaliveSeconds: 25 },
  ]);
});

test("what stands is not touched, also where the other end has moved by itself", () => {
  const moved = { ...standing, endpoint: at("172.30.0.77") };
  expect(peerChanges({ peers: [moved] }, peers, port, told)).toEqual([]);
});

test("an address that the registry tells anew is used at once", () => {
  const { peers: elsewhere } = wantedPeers([node(2, { addresses: [parseIp("172.30.0.9")!] })], both);
  const moved = { ...standing, endpoint: at("172.30.0.2") };
  expect(peerChanges({ peers: [moved] }, elsewhere, port, told)).toEqual([
    { publicKey: key(2), endpoint: at("172.30.0.9") },
  ]);
});

test("with another address of this node every end is told once more, where it is known to be now", () => {
  const moved = { ...standing, endpoint: at("172.30.0.77") };
  expect(peerChanges({ peers: [moved] }, peers, port, told, true)).toEqual([
    { publicKey: key(2), endpoint: at("172.30.0.77") },
  ]);
});

test("other subnets replace those of before", () => {
  const { peers: other } = wantedPeers([node(2, { subnets: [parseCidr("10.10.8.0/24")!] })], both);
  const is = { ...standing, endpoint: at("172.30.0.2") };
  expect(peerChanges({ peers: [is] }, other, port, told)).toEqual([{ publicKey: key(2), allowed: other[0]!.allowed }]);
});

test("silence is told, and a clock that was set does not hide it", () => {
  const now = 1_000_000;
  const told = (handshakeAt: number) => silentPeers({ peers: [{ ...standing, handshakeAt }] }, peers, port, now);
  expect(told(now - 170)).toEqual([]);
  expect(told(now + 5)).toEqual([]);
  const is = expect.stringMatching(/^nothing goes to the pods of node "n2" at 172\.30\.0\.2: it agrees on no keys/);
  expect(told(0)).toEqual([{ is, since: "never so far" }]);
  expect(told(now - 600)).toEqual([{ is, since: "10 minutes ago" }]);
  expect(told(now + 600)).toEqual([{ is, since: "the clock was set since the last time" }]);
  expect(silentPeers({ peers: [] }, peers, port, now)).toHaveLength(1);
});
