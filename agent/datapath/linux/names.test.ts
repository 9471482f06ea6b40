import { expect, test } from "vitest";
import { maxContainerIdChars, maxIfnameBytes, maxNetworkNameChars } from "../../../shared/cni/names.ts";
import { digest, hostIfname, ownerParts } from "../owner-names.ts";
import { aliasBytes, formatAlias, longestAlias, ownerAltName, ownerNames, parseAlias } from "./names.ts";

const owner = { network: "pods", sandboxId: "3f2a91bc77", ifname: "eth0" };
const pod = (name: string, namespace = "default") => ({ namespace, name, uid: "" });

test.each([
  ["coredns-5d78c9869d-abcde", /^coredns-[a-z0-9]{6}$/],
  ["a", /^a-[a-z0-9]{6}$/],
  ["web-frontend-7", /^web-fron-[a-z0-9]{6}$/],
  ["cache-1-x", /^cache-1-[a-z0-9]{6}$/],
  ["kafka.broker/../x", /^kafka-br-[a-z0-9]{6}$/],
  ["ÄÖÜ", /^pod-[a-z0-9]{6}$/],
  ["", /^3f2a91bc-[a-z0-9]{6}$/],
])('a pod "%s" gets a readable, safe name of 15 bytes at most', (name, expected) => {
  const ifname = hostIfname(owner, pod(name));
  expect(ifname).toMatch(expected);
  expect(ifname.length).toBeLessThanOrEqual(maxIfnameBytes);
});

test("names are stable, and differ with every part of what they are made of", () => {
  const names = [
    hostIfname(owner, pod("web")),
    hostIfname(owner, pod("web", "other")),
    hostIfname({ ...owner, sandboxId: "3f2a91bc78" }, pod("web")),
    hostIfname({ ...owner, ifname: "net1" }, pod("web")),
    hostIfname({ ...owner, network: "storage" }, pod("web")),
  ];
  expect(new Set(names).size).toBe(names.length);
  expect(hostIfname({ ...owner }, pod("web"))).toBe(names[0]);
  // Parts must not run into each other.
  expect(hostIfname(owner, pod("b", "a"))).not.toBe(hostIfname(owner, pod("", "ab")));
});

test("fixed names: an upgrade must find what an earlier release made", () => {
  expect(ownerNames(owner).altName).toBe(ownerAltName(owner));
  expect(ownerAltName(owner)).toBe("pipette-b0eb39ed587be1546d835827ed694ae2020a8b39");
  expect(hostIfname(owner, pod("web"))).toBe("web-grejfl");
});

test("the digits behind a name are those that the runtime would write", () => {
  for (let i = 0; i < 500; i++) {
    const one = { ...owner, sandboxId: `s${i}` };
    const hash = digest("host name", ...ownerParts(one), "default", "web");
    const number = Buffer.from(hash).readUIntBE(0, 6);
    expect(hostIfname(one, pod("web"))).toBe(`web-${(number % 36 ** 6).toString(36).padStart(6, "0")}`);
  }
});

/** A sandbox that is added again keeps its neighbours' caches valid. */
const fixedMacs = ["8a5a23fd7f97", "f25eaae9f4a0"];

test("hardware addresses are of one interface, locally administered, and differ", () => {
  const { podMac, hostMac } = ownerNames(owner);
  const macs = [podMac, hostMac, ownerNames({ ...owner, ifname: "net1" }).podMac];
  for (const mac of macs) {
    expect(mac).toHaveLength(6);
    expect(mac[0]! & 3).toBe(2);
  }
  expect(new Set(macs.map(String)).size).toBe(3);
  // The 20 bytes of the second name are followed by both.
  expect([podMac, hostMac].map((mac) => mac.toHex())).toEqual(fixedMacs);
});

test("the alias says whose an interface is, and fits with the longest names", () => {
  for (const ownLease of [true, false]) {
    expect(parseAlias(formatAlias({ owner, ownLease }))).toEqual({ owner, ownLease });
  }
  const longest = formatAlias({
    owner: {
      network: "n".repeat(maxNetworkNameChars),
      sandboxId: "s".repeat(maxContainerIdChars),
      ifname: "i".repeat(maxIfnameBytes),
    },
    ownLease: false,
  });
  expect(longest).toHaveLength(longestAlias);
  expect(longestAlias).toBeLessThanOrEqual(aliasBytes);
});

test.each([
  "",
  "pipette",
  "pipette:own:a:b",
  "pipette:own:a:b:c:d",
  "pipette:mine:a:b:c",
  "other:own:a:b:c",
  "pipette:own::b:c",
])('the alias "%s" is not ours', (text) => {
  expect(parseAlias(text)).toBeUndefined();
});
