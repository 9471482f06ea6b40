import { describe, expect, test } from "vitest";
import { parseCidr } from "../../../../shared/net/ip.ts";
import type { Link } from "../../../protocols/netlink/mod.ts";
import { linkGroup } from "../../linux/host-links.ts";
import type { ConnectedPod, PodPort } from "../overlay-node.ts";
import { comparePort, switchPort } from "./host-port.ts";

const link = { name: "ve0", index: 7, up: true } as Link;
const pod = { port: "ve0", device: "7", ofport: 1024 } as ConnectedPod;
const said = (changes: Partial<Link>, port: ConnectedPod | undefined) => () =>
  comparePort({ ...link, ...changes }, port, "br-int");

test("a host's end is confirmed that is up, and a port of this very device", () => {
  expect(said({}, pod)).not.toThrow();
});

test.each([
  ["down", { up: false }, pod, "it is down, wanted up"],
  ["no port", {}, undefined, 'it is no port, wanted a port of the bridge "br-int"'],
  ["another's port", {}, { ...pod, port: "ve1" }, "it is no port"],
  ["of an earlier device", {}, { ...pod, device: "6" }, "it is another than the port was made of"],
  ["not made yet", {}, { port: "ve0", device: "7" } as ConnectedPod, "no port of the switch (not made yet)"],
  ["not made", {}, { port: "ve0", device: "7", problem: "no such device" } as ConnectedPod, "(no such device)"],
])("one that is %s is named", (_name, changes, port, says) => {
  expect(said(changes, port)).toThrow(says);
});

describe("a host's end becomes a port", () => {
  const asked: (PodPort | object)[] = [];
  const node = {
    connectPod: async (port: PodPort) => void asked.push(port),
    disconnectPod: async (owner: object) => void asked.push(owner),
  };
  const owner = { network: "pods", sandboxId: "a", ifname: "eth0" };
  const address = parseCidr("10.1.0.5/24")!;
  const plan = (pod?: object) =>
    ({
      owner,
      ipam: { ips: [{ address }] },
      request: { container: { netns: "/run/netns/a" }, ownLease: true, ...(pod === undefined ? {} : { pod }) },
    }) as never;

  test.each([
    ["system", true, linkGroup.inService],
    ["netdev", false, linkGroup.onSwitch],
  ] as const)("of a switch of kind %s", (kind, finishesChecksums, group) => {
    const side = switchPort(node, "br-int", kind, { name: "gw0", index: 3 });
    expect(side).toMatchObject({ bridge: { name: "br-int" }, master: 0, finishesChecksums, group });
    expect(side.portOptions(link, new Uint8Array(6))).toEqual([]);
  });

  test("by all that is known of its pod, and leaves by its owner", async () => {
    const side = switchPort(node, "br-int", "system", { name: "gw0", index: 3 });
    const who = { namespace: "shop", name: "web", uid: "u" };
    await side.connect?.(link, plan(who), "02:00:00:00:00:01");
    await side.connect?.(link, plan(), "02:00:00:00:00:01");
    await side.disconnect?.(plan());
    const port = {
      owner,
      port: "ve0",
      device: "7",
      mac: "02:00:00:00:00:01",
      ips: [address.ip],
      netns: "/run/netns/a",
    };
    expect(asked).toEqual([{ ...port, ownLease: true, pod: who }, { ...port, ownLease: true }, owner]);
  });
});
