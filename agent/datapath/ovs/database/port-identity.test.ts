import { expect, test } from "vitest";
import { parseIp } from "../../../../shared/net/ip.ts";
import { formatIdentity, ownerOf, parseIdentity, roleOf } from "./port-identity.ts";

const identity = {
  owner: { network: "pods", sandboxId: "3f2a91bc77", ifname: "eth0" },
  mac: "02:00:5e:10:00:01",
  ips: [parseIp("10.1.0.5")!, parseIp("fd00::5")!],
  netns: "/run/netns/x",
  ownLease: true,
  vnid: 12,
  device: "17",
  pod: { namespace: "shop", name: "web-0", uid: "u" },
};
const idsOf = (change: Readonly<Record<string, string>>) =>
  new Map(Object.entries({ ...formatIdentity(identity), ...change }));

test("what the database keeps of a pod's port is read back as it was", () => {
  expect(parseIdentity(idsOf({}))).toEqual(identity);
  const { pod: _, device: __, ...least } = identity;
  const bare = { ...least, ips: [], vnid: 0, ownLease: false, netns: "" };
  expect(parseIdentity(new Map(Object.entries(formatIdentity(bare))))).toEqual(bare);
});

test.each([
  ["a MAC that is none", { "attached-mac": "02:00:5e:10:00" }],
  ["an address that is none", { "ip-address": "10.1.0.5,10.1.0.256" }],
  ["a VNID beyond its bits", { "pipette-vnid": "16777216" }],
  ["a VNID that is no number", { "pipette-vnid": "x" }],
])("%s makes the rest unsound, and the port is still the owner's", (_what, change) => {
  expect(parseIdentity(idsOf(change))).toBeUndefined();
  expect(ownerOf(idsOf(change))).toEqual(identity.owner);
});

test.each([
  ["nobody's", { "pipette-type": "" }],
  ["the gateway's", { "pipette-type": "gateway" }],
  ["of a network with a line break", { "pipette-network": "pods\nx" }],
  ["of a sandbox without a name", { "pipette-sandbox": "" }],
  ["of an interface that is a path", { "pipette-ifname": "../eth0" }],
])("a port that is %s is no pod's of ours", (_what, change) => {
  expect([ownerOf(idsOf(change)), parseIdentity(idsOf(change))]).toEqual([undefined, undefined]);
});

test("a port without a word of ours has no role", () => {
  expect(roleOf(new Map([["antrea-type", "gateway"]]))).toBeUndefined();
});
