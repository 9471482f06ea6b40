import { expect, test } from "vitest";
import { formatIp, parseCidr, parseIp } from "../../../../../shared/net/ip.ts";
import type { ClusterNode } from "../../../../cluster/node-registry.ts";
import type { Agreed } from "./handshake-ages.ts";
import { greetsSecond, idlePeers, peerChanges, silentPeers, wantedPeers } from "./wanted-peers.ts";

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

test("who does not encrypt likewise is named and gets nothing", () => {
  const { encryption: _, ...plain } = node(3);
  const { peers, strangers } = wantedPeers([node(2), plain], both);
  expect(peers.map((peer) => peer.node)).toEqual(["n2"]);
  expect(strangers).toEqual([expect.stringContaining('node "n3": it does not encrypt')]);
});

const { peers } = wantedPeers([node(2)], both);
const standing = {
  publicKey: key(2),
  allowed: peers[0]!.allowed,
  keepaliveSeconds: 25,
  handshakeAt: 0,
  receivedBytes: 0,
  sentBytes: 0,
};
const at = (ip: string) => ({ ip: parseIp(ip)!, port });
const told = new Map([[key(2), "172.30.0.2"]]);

test("a new peer is there before it gets its blocks, and is greeted; who goes gets nothing more, after that", () => {
  const gone = { ...standing, publicKey: key(9) };
  expect(peerChanges({ peers: [gone] }, peers, port, new Map())).toEqual([
    { publicKey: key(2), allowed: [] },
    { publicKey: key(2), endpoint: at("172.30.0.2"), allowed: peers[0]!.allowed, keepaliveSeconds: 25 },
    { publicKey: key(9), allowed: [] },
  ]);
});

test("of two that come to know each other one greets first, and the other adds it without a greeting", () => {
  const [one, two] = wantedPeers([node(1), node(2)], both).peers as [(typeof peers)[0], (typeof peers)[0]];
  expect([greetsSecond(one.key, two, []), greetsSecond(two.key, one, [])]).toEqual([false, true]);
  const greetsLater = (peer: typeof one): boolean => greetsSecond(two.key, peer, []);
  expect(peerChanges({ peers: [] }, [one], port, new Map(), greetsLater)).toEqual([
    { publicKey: one.key, allowed: [] },
    { publicKey: one.key, endpoint: at("172.30.0.1"), allowed: one.allowed },
  ]);
});

test("a node that has taken another key is greeted at once, whichever the keys are: packets wait for that", () => {
  const [before, now] = [
    wantedPeers([node(1)], both).peers,
    { ...wantedPeers([node(1)], both).peers[0]!, key: key(3) },
  ];
  expect(greetsSecond(key(9), now, before)).toBe(false);
  expect(greetsSecond(key(9), now, [])).toBe(true);
});

test("who has gone is idle, and nothing more is said of it", () => {
  const idle = { ...standing, publicKey: key(9), allowed: [] };
  const is = { ...standing, endpoint: at("172.30.0.2") };
  expect(peerChanges({ peers: [is, idle] }, peers, port, told)).toEqual([]);
  expect(idlePeers({ peers: [is, idle, { ...standing, publicKey: key(8) }] }, peers)).toEqual([key(9)]);
  // A node without pods is wanted all the same.
  expect(idlePeers({ peers: [{ ...standing, allowed: [] }] }, peers)).toEqual([]);
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
  expect(peerChanges({ peers: [moved] }, peers, port, told, () => false, true)).toEqual([
    { publicKey: key(2), endpoint: at("172.30.0.77") },
  ]);
});

test("other subnets replace those of before", () => {
  const { peers: other } = wantedPeers([node(2, { subnets: [parseCidr("10.10.8.0/24")!] })], both);
  const is = { ...standing, endpoint: at("172.30.0.2") };
  expect(peerChanges({ peers: [is] }, other, port, told)).toEqual([{ publicKey: key(2), allowed: other[0]!.allowed }]);
});

test("silence is told, since when, and that it may be this node's clock", () => {
  const silent = (last: Agreed, behind?: Date) => silentPeers(peers, () => last, port, behind);
  expect(silent({ t: "ago", ms: 170_000 })).toEqual([]);
  expect(silent({ t: "unknown", ms: 170_000 })).toEqual([]);
  const is = expect.stringMatching(
    /^nothing goes to the pods of node "n2" at 172\.30\.0\.2: it agrees on no keys: its key is not/,
  );
  expect(silent({ t: "never" })).toEqual([{ is, since: "never so far" }]);
  expect(silent({ t: "ago", ms: 600_000 })).toEqual([{ is, since: "10 minutes ago" }]);
  expect(silent({ t: "unknown", ms: 181_000 })).toEqual([{ is, since: "the clock was set since the last time" }]);
  const own = /this node's clock was set back, and others take its handshakes only from 2027-01-15T08:00:00.000Z on/;
  expect(silent({ t: "never" }, new Date(1_800_000_000_000))[0]?.is).toMatch(own);
});
